package directory

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's, named hubcloud_directory_….
type metrics struct {
	failed     *prometheus.CounterVec
	appended   prometheus.Counter
	appendTime prometheus.Histogram
	conflicts  prometheus.Counter
	failures   prometheus.Counter
	settleTime prometheus.Histogram
	unsettled  prometheus.Counter
}

func newMetrics() *metrics {
	// From a write beside the broker to one that waits for a leader, in seconds.
	buckets := []float64{
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
		15,
	}
	failed := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hubcloud_directory_append_failures_total",
		Help: "Decisions that were not stored: `conflict`, another one about the same thing came " +
			"first, after which it is decided again; or " +
			"`error`, the broker refused or did not answer, and a management call failed.",
	}, []string{"cause"})
	return &metrics{
		failed: failed,
		appended: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_directory_events_appended_total",
			Help: "Events that were stored in the directory.",
		}),
		appendTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hubcloud_directory_append_duration_seconds",
			Help: "Seconds that the broker took to store the events of one decision in the " +
				"directory, with repeats. A rise is a slow disk, or " +
				"a cluster that has lost a leader.",
			Buckets: buckets,
		}),
		settleTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hubcloud_directory_settle_duration_seconds",
			Help: "Seconds that a management call waited, once its events were stored, until " +
				"read models and every replica had them. A rise is " +
				"a projector that lags, or a replica that does not answer.",
			Buckets: buckets,
		}),
		unsettled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_directory_unsettled_total",
			Help: "Management calls that were stored and whose effect was not seen in time; they " +
				"are answered all the same, but for those that take access away. Any rise is a " +
				"projector that stands, or a replica that hangs.",
		}),
		conflicts: failed.WithLabelValues("conflict"),
		failures:  failed.WithLabelValues("error"),
	}
}

// register panics on a registry that holds such metrics already.
func (m *metrics) register(r prometheus.Registerer) {
	r.MustRegister(m.appended, m.appendTime, m.failed, m.settleTime, m.unsettled)
}
