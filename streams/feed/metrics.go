package feed

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hubcloud/streams/telemetry"
)

// metrics are named hubcloud_feed_….
type metrics struct {
	pages       prometheus.Counter
	cacheHits   prometheus.Counter
	cacheMisses prometheus.Counter
	directGets  prometheus.Counter
	read        prometheus.Counter
	fromJournal prometheus.Counter
	silent      prometheus.Counter
	appended    prometheus.Counter
	appendTime  prometheus.Histogram
	conflicts   prometheus.Counter
	failures    prometheus.Counter
	gaps        prometheus.Counter
	overruns    prometheus.Counter
	cacheBytes  prometheus.Gauge
	tails       prometheus.Gauge
	readers     prometheus.Gauge
}

// newMetrics creates the metrics and registers them with r, unless r is nil. It panics if r has
// them already.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return metric.NewCounter(prometheus.CounterOpts{
			Namespace: "hubcloud", Subsystem: "feed", Name: name, Help: help,
		})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return metric.NewGauge(prometheus.GaugeOpts{
			Namespace: "hubcloud", Subsystem: "feed", Name: name, Help: help,
		})
	}
	appendFailures := metric.NewCounterVec(prometheus.CounterOpts{
		Namespace: "hubcloud", Subsystem: "feed", Name: "append_failures_total",
		Help: "Failed appends to hub logs, by cause. `conflict`: another writer stored first, as " +
			"while a hub moves to another bridge. `error`: the broker rejected the append or did " +
			"not answer; hubs get no acks meanwhile.",
	}, []string{"cause"})
	appendTime := metric.NewHistogram(prometheus.HistogramOpts{
		Namespace: "hubcloud", Subsystem: "feed", Name: "append_duration_seconds",
		Help: "Seconds to store one message or batch in a hub log, including the wait for a " +
			"slot. A rise means a slow disk: the broker syncs before it confirms.",
		// From a write into memory next to the broker to the wait for a new leader.
		Buckets: telemetry.LatencyBuckets(.0001, 10),
	})
	m := &metrics{
		pages:     counter("pages_total", "Pages of events read, long polls included."),
		cacheHits: counter("cache_hits_total", "Blocks of history found in the cache."),
		cacheMisses: counter(
			"cache_misses_total",
			"Blocks of history read from the stream because the cache did not have them. A rise "+
				"means that readers are far behind.",
		),
		directGets: counter(
			"direct_gets_total",
			"Requests to the broker for a batch of messages (JetStream direct gets).",
		),
		read: counter("messages_read_total", "Messages read from the streams of hub logs."),
		fromJournal: counter(
			"journal_records_read_total",
			"Records read from a journal because the stream of their hub log lacked them.",
		),
		silent: counter(
			"silent_streams_total",
			"Times that the stream of a hub log did not answer within a second. Its readers read "+
				"from the journal for some seconds then. A rise means that a server of the broker "+
				"is overloaded, stopped or cut off.",
		),
		appended: counter("messages_appended_total",
			"Messages stored in hub logs: events and records of commands."),
		appendTime: appendTime,
		conflicts:  appendFailures.WithLabelValues("conflict"),
		failures:   appendFailures.WithLabelValues("error"),
		gaps: counter(
			"gaps_total",
			"Times that a tail missed records of its log. They were read from the stream "+
				"instead, so readers got them late but complete.",
		),
		overruns: counter(
			"ring_overruns_total",
			"Times that a reader fell behind the events in memory and read from the stream "+
				"instead. A rise means slow readers, or that --live-cache is too small.",
		),
		cacheBytes: gauge(
			"cache_bytes", "Bytes in the cache of history; --live-cache limits them.",
		),
		tails: gauge("tails", "Logs whose newest events are held in memory."),
		readers: gauge(
			"readers", "Readers of the newest events: streams, long polls and pages in progress.",
		),
	}
	return m
}
