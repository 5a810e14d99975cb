package lease

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// metrics are the metrics hubcloud_lease_….
type metrics struct {
	held, wanted prometheus.Gauge
	lost         prometheus.Counter
}

// newMetrics returns the metrics, registered with r unless r is nil.
func newMetrics(r prometheus.Registerer) *metrics {
	metric := telemetry.NewMetrics(r, "lease")
	return &metrics{
		held: metric.Gauge("groups_held", "Groups whose lease this replica holds and whose hubs it serves. The "+
			"sum over all replicas is the number of groups; a lower sum for long means that some hubs are not "+
			"served."),
		wanted: metric.Gauge("groups_wanted", "Groups whose lease this replica should hold: its share of all "+
			"groups."),
		lost: metric.Counter("lost_total", "Leases that another replica took over because this one did not "+
			"renew them. Any rise means a broker that was out of reach, or a process that was suspended."),
	}
}
