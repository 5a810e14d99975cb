package access

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// register registers the metrics.
func (a *Index) register(registerer prometheus.Registerer) {
	gauge := func(name, help string, value func() float64) {
		promauto.With(registerer).NewGaugeFunc(
			prometheus.GaugeOpts{Name: "hubcloud_projections_access_" + name, Help: help}, value,
		)
	}
	counted := func(count func() int) func() float64 {
		return func() float64 {
			a.mu.RLock()
			defer a.mu.RUnlock()
			return float64(count())
		}
	}
	gauge(
		"sequence",
		"Sequence of the last event in this replica's index of keys, members and hubs, by "+
			"which requests are authorized.",
		func() float64 { return float64(a.Applied()) },
	)
	gauge(
		"unread_events",
		"Events of the directory that this replica could not read since it started. API keys "+
			"with such an event are rejected. More than 0 means that a newer version of the "+
			"program, or a person, writes to the directory.",
		counted(func() int { return a.unread }),
	)
	gauge(
		"keys", "API keys in force, of all organizations.",
		counted(func() int { return len(a.keys) }),
	)
	gauge(
		"hubs", "Hubs that organizations have added.",
		counted(func() int { return len(a.hubs.access) }),
	)
}
