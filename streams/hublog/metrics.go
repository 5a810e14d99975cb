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
	feedGaps    prometheus.Counter
	overruns    prometheus.Counter
	cacheBytes  prometheus.Gauge
	tails       prometheus.Gauge
	readers     prometheus.Gauge
}

// newMetrics makes the metrics and registers them, unless r is nil. A registry that holds such metrics already panics.
func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "hubcloud", Subsystem: "hublog", Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "hubcloud", Subsystem: "hublog", Name: name, Help: help})
	}
	m := &metrics{
		pages:       counter("pages_total", "Pages of events that were read."),
		cacheHits:   counter("cache_hits_total", "Blocks of history that were found in the cache."),
		cacheMisses: counter("cache_misses_total", "Runs of history that had to be read from the log."),
		directGets:  counter("direct_gets_total", "Batched direct gets that were sent to the broker."),
		read:        counter("messages_read_total", "Messages that were read from the log."),
		appended:    counter("messages_appended_total", "Messages that were stored in hub logs."),
		feedGaps:    counter("feed_gaps_total", "Times that messages of the feed were missed and read from the log instead."),
		overruns:    counter("ring_overruns_total", "Times that a stream's reader fell behind the ring and went back to the log."),
		cacheBytes:  gauge("cache_bytes", "Size of the cache of history."),
		tails:       gauge("tails", "Logs whose end is held in memory."),
		readers:     gauge("readers", "Readers of tails: streams, long polls and pages under way."),
	}
	if r != nil {
		r.MustRegister(m.pages, m.cacheHits, m.cacheMisses, m.directGets, m.read, m.appended, m.feedGaps, m.overruns, m.cacheBytes, m.tails, m.readers)
	}
	return m
}
