package commands

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	sent             *prometheus.CounterVec
	repeated, shared prometheus.Counter
}

// newMetrics makes the metrics, and registers them unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_commands_total",
			Help: "Commands sent to hubs, by outcome (accepted, canceled, or the type of the error).",
		}, []string{"outcome"}),
		repeated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_commands_repeated_total",
			Help: "Commands answered with the answer that was remembered.",
		}),
		shared: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_commands_shared_total",
			Help: "Commands that waited for the same command under way.",
		}),
	}
	if r != nil {
		r.MustRegister(m.sent, m.repeated, m.shared)
	}
	return m
}
