package projections

import "github.com/prometheus/client_golang/prometheus"

// metrics are the package's, by the label `projection` (directory, presence) where they are a projection's.
type metrics struct {
	sequence, head, stopped *prometheus.GaugeVec
	events                  *prometheus.CounterVec
	commits                 *prometheus.HistogramVec
	leading                 prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "hubcloud", Subsystem: "projections", Name: name, Help: help}
	}
	by := []string{"projection"}
	m := &metrics{
		sequence: prometheus.NewGaugeVec(gauge("sequence", "Sequence of the last event that the read models have."), by),
		head:     prometheus.NewGaugeVec(gauge("head_sequence", "Sequence of the stream's last event."), by),
		stopped:  prometheus.NewGaugeVec(gauge("stopped", "1 while an event that cannot be applied stops the projection."), by),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "events_total", Help: "Events applied to the read models.",
		}, by),
		commits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "commit_duration_seconds", Help: "Time to apply a batch of events.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, by),
		leading: prometheus.NewGauge(gauge("leading", "1 while this process builds the read models.")),
	}
	for _, projection := range []string{DirectoryProjection, PresenceProjection} {
		m.stopped.WithLabelValues(projection).Set(0)
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{m.sequence, m.head, m.stopped, m.events, m.commits, m.leading} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}
