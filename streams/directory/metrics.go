package directory

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the package's metrics, named hubcloud_directory_….
type metrics struct {
	appended           prometheus.Counter
	appendTime         prometheus.Histogram
	conflicts          prometheus.Counter
	failures           prometheus.Counter
	effectWait         prometheus.Histogram
	effectsUnconfirmed prometheus.Counter
}

// newMetrics registers the metrics with r, unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(r, "directory")
	// In seconds: from a write beside the broker to one that waits for a leader.
	buckets := append(telemetry.LatencyBuckets(.0001, 10), 15)
	failed := metric.Counters("append_failures_total", "Failed appends to the directory, by cause. `conflict`: "+
		"another change of the same object was stored first; the service retries. `error`: the broker failed or "+
		"did not answer; the request failed.", "cause")
	return &metrics{
		appended: metric.Counter("events_appended_total", "Events stored in the directory."),
		appendTime: metric.Histogram("append_duration_seconds", "Seconds to store the events of one change in the "+
			"directory, including retries. A rise means a slow disk, or a cluster that has lost a leader.", buckets),
		effectWait: metric.Histogram("effect_wait_duration_seconds", "Seconds that a request waited, after its "+
			"change was stored, until the read models and every replica had the change. A rise means a projector "+
			"that lags, or a replica that does not answer.", buckets),
		effectsUnconfirmed: metric.Counter("effects_unconfirmed_total", "Stored changes that the read models or a "+
			"replica did not confirm in time. Their requests succeed, except those that revoke access, which fail "+
			"with service_unavailable. Any rise means a stopped projector, or a replica that hangs."),
		conflicts: failed.WithLabelValues("conflict"),
		failures:  failed.WithLabelValues("error"),
	}
}
