package directory

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the package's metrics, named hubcloud_directory_….
type metrics struct {
	failed             *prometheus.CounterVec
	appended           prometheus.Counter
	appendTime         prometheus.Histogram
	conflicts          prometheus.Counter
	failures           prometheus.Counter
	effectWait         prometheus.Histogram
	effectsUnconfirmed prometheus.Counter
}

func newMetrics() *metrics {
	// In seconds: from a write beside the broker to one that waits for a leader.
	buckets := append(telemetry.LatencyBuckets(.0001, 10), 15)
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_directory_append_failures_total",
		Help: "Appends to the directory that stored nothing, by cause: `conflict`, another change of " +
			"the same object came first, and the command is decided again; " +
			"`error`, the broker failed or did not answer, and a management call failed.",
	}, []string{"cause"})
	return &metrics{
		failed: failed,
		appended: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_directory_events_appended_total",
			Help: "Events stored in the directory.",
		}),
		appendTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hubcloud_directory_append_duration_seconds",
			Help: "Seconds that the broker took to store the events of one decision in the " +
				"directory, with retries. A rise is a slow disk, or a cluster that has lost a leader.",
			Buckets: buckets,
		}),
		effectWait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hubcloud_directory_effect_wait_duration_seconds",
			Help: "Seconds that a management call waited after its events were stored, until the " +
				"read models and every replica had them. A rise is a projector that lags, or a " +
				"replica that does not answer.",
			Buckets: buckets,
		}),
		effectsUnconfirmed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_directory_effects_unconfirmed_total",
			Help: "Management calls that were stored, but whose effect was not confirmed in time. " +
				"They succeed all the same, except for those that take access away. Any rise is a " +
				"projector that has stopped, or a replica that hangs.",
		}),
		conflicts: failed.WithLabelValues("conflict"),
		failures:  failed.WithLabelValues("error"),
	}
}

// register panics if the registry already has metrics of these names.
func (m *metrics) register(r prometheus.Registerer) {
	r.MustRegister(m.appended, m.appendTime, m.failed, m.effectWait, m.effectsUnconfirmed)
}
