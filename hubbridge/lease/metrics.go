package lease

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's, named hubcloud_lease_….
type metrics struct {
	held, wanted prometheus.Gauge
	lost         prometheus.Counter
}

// newMetrics makes the metrics and registers them, unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		held: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_lease_shards_held",
			Help: "Shards that this replica has the lease of, and looks after the hubs of. Over " +
				"all replicas the sum is the number of shards; less for " +
				"long is hubs that nobody hears.",
		}),
		wanted: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_lease_shards_wanted",
			Help: "Shards that this replica should have the lease of, as the replicas that are there divide them.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_lease_lost_total",
			Help: "Leases that this replica lost because it could not renew them in time. Any " +
				"rise is a broker that does not answer, or a process " +
				"that stood still.",
		}),
	}
	if r != nil {
		r.MustRegister(m.held, m.wanted, m.lost)
	}
	return m
}
