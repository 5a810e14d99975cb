package access

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/telemetry"
)

// register registers the metrics.
func (a *Index) register(registerer prometheus.Registerer) {
	counted := func(count func() int) func() float64 {
		return func() float64 {
			a.mu.RLock()
			defer a.mu.RUnlock()
			return float64(count())
		}
	}
	metric := telemetry.NewMetrics(registerer, "projections_access")
	metric.GaugeFunc("sequence", "Sequence of the last event in this replica's index of keys, members and hubs, "+
		"by which requests are authorized.", func() float64 { return float64(a.Applied()) })
	metric.GaugeFunc("unread_events", "Events of the directory that this replica could not read since it started. "+
		"API keys with such an event are rejected. More than 0 means that a newer version of the program, or a "+
		"person, writes to the directory.", counted(func() int { return a.unread }))
	metric.GaugeFunc("keys", "API keys in force, of all organizations.", counted(func() int { return len(a.keys) }))
	metric.GaugeFunc("hubs", "Hubs that organizations have added.",
		counted(func() int { return len(a.hubs.access) }))
}
