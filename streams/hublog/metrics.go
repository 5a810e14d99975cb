package hublog

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's, named hubcloud_hublog_….
type metrics struct {
	pages       prometheus.Counter
	cacheHits   prometheus.Counter
	cacheMisses prometheus.Counter
	directGets  prometheus.Counter
	read        prometheus.Counter
	appended    prometheus.Counter
	appendTime  prometheus.Histogram
	conflicts   prometheus.Counter
	failures    prometheus.Counter
	feedGaps    prometheus.Counter
	overruns    prometheus.Counter
	cacheBytes  prometheus.Gauge
	tails       prometheus.Gauge
	readers     prometheus.Gauge
}

// newMetrics makes the metrics and registers them, unless r is nil. A registry that holds such
// metrics already panics.
func newMetrics(r prometheus.Registerer) *metrics {
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(
			prometheus.CounterOpts{
				Namespace: "hubcloud",
				Subsystem: "hublog",
				Name:      name,
				Help:      help,
			},
		)
		all = append(all, c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(
			prometheus.GaugeOpts{
				Namespace: "hubcloud",
				Subsystem: "hublog",
				Name:      name,
				Help:      help,
			},
		)
		all = append(all, g)
		return g
	}
	appends := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "hubcloud", Subsystem: "hublog", Name: "append_failures_total",
		Help: "Appends to hub logs that failed: `conflict`, somebody else had written, which two " +
			"bridges at one hub do to each other for a " +
			"moment; or `error`, the broker refused or did not answer, which withholds acks from hubs.",
	}, []string{"cause"})
	m := &metrics{
		pages:     counter("pages_total", "Pages of events that were read, waiting reads among them."),
		cacheHits: counter("cache_hits_total", "Blocks of history that were found in the cache."),
		cacheMisses: counter(
			"cache_misses_total",
			"Runs of history that had to be read from the log. Beside many hits a rise is readers that are far behind.",
		),
		directGets: counter(
			"direct_gets_total", "Batched direct gets that were sent to the broker.",
		),
		read: counter("messages_read_total", "Messages that were read from the log."),
		appended: counter(
			"messages_appended_total",
			"Messages that were stored in hub logs: events, and records of commands.",
		),
		appendTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "hubcloud", Subsystem: "hublog", Name: "append_duration_seconds",
			Help: "Seconds that the broker took to store one message or batch of messages in a " +
				"hub log, with the wait for a place among those " +
				"under way. A rise is a slow disk: what is acknowledged is synced before.",
			Buckets: appendBuckets(),
		}),
		conflicts: appends.WithLabelValues("conflict"),
		failures:  appends.WithLabelValues("error"),
		feedGaps: counter(
			"feed_gaps_total",
			"Times that messages of the feed were missed and read from the log instead: nothing is lost, only later.",
		),
		overruns: counter(
			"ring_overruns_total",
			"Times that a stream's reader fell behind the ring and went back to the log. A rise "+
				"is slow readers, or --live-cache too small.",
		),
		cacheBytes: gauge(
			"cache_bytes", "Bytes in the cache of history, of those that --history-cache allows.",
		),
		tails:   gauge("tails", "Logs whose end is held in memory."),
		readers: gauge("readers", "Readers of tails: streams, waiting reads and pages under way."),
	}
	if r != nil {
		r.MustRegister(append(all, appends, m.appendTime)...)
	}
	return m
}

// appendBuckets reach from a write into memory beside the broker to one that waits for a leader, in
// seconds.
func appendBuckets() []float64 {
	return []float64{
		.0001,
		.00025,
		.0005,
		.001,
		.0025,
		.005,
		.01,
		.025,
		.05,
		.1,
		.25,
		.5,
		1,
		2.5,
		5,
		10,
	}
}
