package views

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the metrics of all Views of a process, named hubcloud_views_….
type metrics struct {
	backlogBytes prometheus.Gauge
	behind       prometheus.Gauge
	written      prometheus.Counter
	failures     prometheus.Counter
	repairs      prometheus.Counter
	rebuilds     prometheus.Counter
	away         prometheus.Gauge
	published    prometheus.Counter
	unpublished  prometheus.Counter
}

// newMetrics creates the metrics and registers them with r, unless r is nil. It panics if r has
// them already.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(r, "views")
	return &metrics{
		backlogBytes: metric.Gauge("backlog_bytes", "Bytes of commits of the journal that are not in the hub "+
			"logs' streams yet. Beyond the limit they are read from the journal again."),
		behind: metric.Gauge("behind", "Hub logs' streams that lack records of the journal and are being repaired "+
			"or wait for it. Readers get these records from the journal meanwhile. More than 0 for long means "+
			"that the broker cannot write them."),
		written: metric.Counter("records_written_total", "Records of the journal written to the hub logs' streams."),
		failures: metric.Counter("failures_total", "Writes and repairs of hub logs' streams that the broker "+
			"rejected or did not answer. Each is followed by a repair."),
		repairs: metric.Counter("repairs_total", "Hub logs' streams that were compared with the journal and are "+
			"complete since. It rises after each start."),
		rebuilds: metric.Counter("rebuilds_total", "Hub logs' streams that were written anew from the journal, "+
			"since they were missing or damaged."),
		away: metric.Gauge("away", "Hub logs' streams whose server in the cluster is away. They are written anew "+
			"on another server once that has lasted for minutes."),
		published: metric.Counter("feed_messages_total", "Records published on the feeds of hub logs."),
		unpublished: metric.Counter("feed_failures_total", "Records that could not be published on the feeds of "+
			"hub logs. Readers of the feed see a gap and read the log."),
	}
}

// count adds or removes one from a number and from its gauge.
func count(added bool, number *atomic.Int64, gauge prometheus.Gauge) {
	change := int64(1)
	if !added {
		change = -1
	}
	number.Add(change)
	gauge.Add(float64(change))
}
