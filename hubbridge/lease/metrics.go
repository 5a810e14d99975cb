package lease

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the metrics hubcloud_lease_….
type metrics struct {
	held, wanted prometheus.Gauge
	lost         prometheus.Counter
}

// newMetrics returns the metrics, registered with r unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := promauto.With(r)
	m := &metrics{
		held: metric.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_lease_groups_held",
			Help: "Groups whose lease this replica holds and whose hubs it serves. The sum over " +
				"all replicas is the number of groups; a lower sum for long means that some hubs " +
				"are not served.",
		}),
		wanted: metric.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_lease_groups_wanted",
			Help: "Groups whose lease this replica should hold: its share of all groups.",
		}),
		lost: metric.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_lease_lost_total",
			Help: "Leases that this replica lost because it could not renew them in time. Any " +
				"rise means a broker that does not answer, or a process that was suspended.",
		}),
	}
	return m
}
