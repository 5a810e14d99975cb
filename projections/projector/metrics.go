package projector

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/projections"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/status"
)

// metrics are the projector's metrics. Most have the label `projection`; only the process that
// projects has series of sequence, head, lagEvents and lagSeconds.
type metrics struct {
	sequence, head, stopped *prometheus.GaugeVec
	stoppedByOperator       *prometheus.GaugeVec
	lagEvents, lagSeconds   *prometheus.GaugeVec
	events                  *prometheus.CounterVec
	commits                 *prometheus.HistogramVec
	interruptions           *prometheus.CounterVec
	leading                 prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{
			Namespace: "hubcloud",
			Subsystem: "projections",
			Name:      name,
			Help:      help,
		}
	}
	by := []string{"projection"}
	m := &metrics{
		sequence: prometheus.NewGaugeVec(
			gauge("sequence", "Sequence of the last event in the read models."), by,
		),
		head: prometheus.NewGaugeVec(
			gauge("head_sequence", "Sequence of the stream's last event, as of at most 5 s ago."),
			by,
		),
		lagEvents: prometheus.NewGaugeVec(gauge(
			"lag_events",
			"Events of the stream that are not yet in the read models, and thus not in answers "+
				"of the API, as of at most 5 s ago.",
		), by),
		lagSeconds: prometheus.NewGaugeVec(gauge(
			"lag_seconds",
			"Age of the oldest event that is not yet in the read models, as of at most 5 s ago; "+
				"0 if there is none. More than a few seconds means that the projector does not "+
				"run or the database is slow.",
		), by),
		stopped: prometheus.NewGaugeVec(gauge(
			"stopped",
			"1 while an event that cannot be applied stops the projection. `hubcloud "+
				"projections status` shows the event and the reason.",
		), by),
		stoppedByOperator: prometheus.NewGaugeVec(gauge(
			"stopped_by_operator",
			"1 while an operator has stopped the projection (`hubcloud projections stop`). "+
				"`hubcloud projections resume` starts it again.",
		), by),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "events_total",
			Help: "Events applied to the read models.",
		}, by),
		commits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "commit_duration_seconds",
			Help: "Seconds to apply a batch of events in one transaction. A rise means a slow " +
				"database.",
			// From half a millisecond to four seconds.
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, by),
		interruptions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "hubcloud", Subsystem: "projections", Name: "interruptions_total",
			Help: "Times that a projection lost the database or the broker and continued from " +
				"its checkpoint. A rise means that one of them restarts or is not reachable.",
		}, by),
		leading: prometheus.NewGauge(gauge(
			"leading",
			"1 while this process applies events to the read models. The sum over all replicas "+
				"is 1; 0 for long means that no process keeps the read models up to date.",
		)),
	}
	for _, projection := range projections.Names() {
		m.stoppedByOperator.WithLabelValues(projection)
	}
	for _, projection := range projections.Common() {
		m.stopped.WithLabelValues(projection)
		m.events.WithLabelValues(projection)
		m.commits.WithLabelValues(projection)
		m.interruptions.WithLabelValues(projection)
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range []prometheus.Collector{
		m.sequence, m.head, m.lagEvents, m.lagSeconds, m.stopped, m.stoppedByOperator, m.events,
		m.commits, m.interruptions, m.leading,
	} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// setOperatorStops sets which projections operators have stopped.
func (m *metrics) setOperatorStops(stops []query.HubcloudStop) {
	for _, projection := range projections.Names() {
		value := 0.0
		if _, stopped := status.StopOf(stops, projection); stopped {
			value = 1
		}
		m.stoppedByOperator.WithLabelValues(projection).Set(value)
	}
}

// setLags sets the heads and lags of the projections.
func (m *metrics) setLags(all []projections.Status) {
	for _, p := range all {
		m.head.WithLabelValues(p.Name).Set(float64(p.Head))
		m.lagEvents.WithLabelValues(p.Name).Set(float64(p.Lag))
		m.lagSeconds.WithLabelValues(p.Name).Set(p.Behind.Seconds())
	}
}

// stopLeading removes the series that only the process that projects may have.
func (m *metrics) stopLeading() {
	m.leading.Set(0)
	for _, gauge := range []*prometheus.GaugeVec{m.sequence, m.head, m.lagEvents, m.lagSeconds} {
		gauge.Reset()
	}
	for _, projection := range projections.Common() {
		m.stopped.WithLabelValues(projection).Set(0)
	}
	m.setOperatorStops(nil)
}
