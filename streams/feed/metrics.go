package feed

import (
	"github.com/prometheus/client_golang/prometheus"

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
	metric := telemetry.NewMetrics(r, "feed")
	appendFailures := metric.Counters("append_failures_total", "Failed appends to hub logs, by cause. `conflict`: "+
		"another writer stored first, as while a hub moves to another bridge. `error`: the broker rejected the "+
		"append or did not answer; hubs get no acks meanwhile.", "cause")
	// From a write into memory next to the broker to the wait for a new leader.
	appendTime := metric.Histogram("append_duration_seconds", "Seconds to store one message or batch in a hub "+
		"log, including the wait for a slot. A rise means a slow disk: the broker syncs before it confirms.",
		telemetry.LatencyBuckets(.0001, 10))
	return &metrics{
		pages:     metric.Counter("pages_total", "Pages of events read, long polls included."),
		cacheHits: metric.Counter("cache_hits_total", "Blocks of history found in the cache."),
		cacheMisses: metric.Counter("cache_misses_total", "Blocks of history read from the stream because the "+
			"cache did not have them. A rise means that readers are far behind."),
		directGets: metric.Counter("direct_gets_total", "Requests to the broker for a batch of messages "+
			"(JetStream direct gets)."),
		read: metric.Counter("messages_read_total", "Messages read from the streams of hub logs."),
		fromJournal: metric.Counter("journal_records_read_total", "Records read from a journal because the stream "+
			"of their hub log lacked them."),
		silent: metric.Counter("silent_streams_total", "Times that the stream of a hub log did not answer within "+
			"a second. Its readers read from the journal for some seconds then. A rise means that a server of the "+
			"broker is overloaded, stopped or cut off."),
		appended: metric.Counter("messages_appended_total", "Messages stored in hub logs: events and records of "+
			"commands."),
		appendTime: appendTime,
		conflicts:  appendFailures.WithLabelValues("conflict"),
		failures:   appendFailures.WithLabelValues("error"),
		gaps: metric.Counter("gaps_total", "Times that a tail missed records of its log. They were read from the "+
			"stream instead, so readers got them late but complete."),
		overruns: metric.Counter("ring_overruns_total", "Times that a reader fell behind the events in memory and "+
			"read from the stream instead. A rise means slow readers, or that --live-cache is too small."),
		cacheBytes: metric.Gauge("cache_bytes", "Bytes in the cache of history; --live-cache limits them."),
		tails:      metric.Gauge("tails", "Logs whose newest events are held in memory."),
		readers: metric.Gauge("readers", "Readers of the newest events: streams, long polls and pages in "+
			"progress."),
	}
}
