package projector

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hubcloud/projections/internal/query"
	"hubcloud/projections/schema"
)

// metrics are the projector's metrics. Only the process that projects has series of sequence, head,
// lagEvents, lagSeconds, hubs and channels.
type metrics struct {
	sequence, head, stopped *prometheus.GaugeVec
	stoppedByOperator       *prometheus.GaugeVec
	lagEvents, lagSeconds   *prometheus.GaugeVec
	events                  *prometheus.CounterVec
	commits                 *prometheus.HistogramVec
	interruptions           *prometheus.CounterVec
	leading                 prometheus.Gauge
	// The metrics of last reported states. hubs and channels have the label journal.
	hubs, channels   *prometheus.GaugeVec
	rows, unreadable prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	auto := promauto.With(registerer)
	gauge := func(name, label, help string) *prometheus.GaugeVec {
		return auto.NewGaugeVec(
			prometheus.GaugeOpts{Name: "hubcloud_projections_" + name, Help: help}, []string{label},
		)
	}
	const by = "projection"
	m := &metrics{
		sequence: gauge(
			"sequence", by, "Sequence of the last event in the read models, as of at most 5 s ago.",
		),
		head: gauge(
			"head_sequence", by, "Sequence of the stream's last event, as of at most 5 s ago.",
		),
		lagEvents: gauge(
			"lag_events", by,
			"Events of the stream that are not yet in the read models, and thus not in answers "+
				"of the API, as of at most 5 s ago.",
		),
		lagSeconds: gauge(
			"lag_seconds", by,
			"Age of the oldest event that is not yet in the read models, as of at most 5 s ago; "+
				"0 if there is none. More than a few seconds means that the projector does not "+
				"run or the database is slow.",
		),
		stopped: gauge(
			"stopped", by,
			"1 while an event that cannot be applied stops the projection. `hubcloud "+
				"projections status` shows the event and the reason.",
		),
		stoppedByOperator: gauge(
			"stopped_by_operator", by,
			"1 while an operator has stopped the projection (`hubcloud projections stop`). "+
				"`hubcloud projections resume` starts it again.",
		),
		events: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_projections_events_total",
			Help: "Events applied to the read models; of devices, commits of the journals.",
		}, []string{by}),
		commits: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "hubcloud_projections_commit_duration_seconds",
			Help: "Seconds to apply a batch of events in one transaction. A rise means a slow " +
				"database.",
			// From half a millisecond to four seconds.
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 14),
		}, []string{by}),
		interruptions: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_projections_interruptions_total",
			Help: "Times that a projection lost the database or the broker and continued from " +
				"its checkpoint. A rise means that one of them restarts or is not reachable.",
		}, []string{by}),
		leading: auto.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_projections_leading",
			Help: "1 while this process applies events to the read models. The sum over all " +
				"replicas is 1; 0 for long means that no process keeps the read models up to date.",
		}),
		hubs: gauge(
			"cached_hubs", "journal", "Hubs whose last reported state is in memory.",
		),
		channels: gauge(
			"cached_channels", "journal", "Channels whose last reported state is in memory.",
		),
		rows: auto.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_projections_state_rows_total",
			Help: "Rows of last reported states written.",
		}),
		unreadable: auto.NewCounter(prometheus.CounterOpts{
			Name: "hubcloud_projections_unreadable_total",
			Help: "Records of hub logs that could not be folded and put their hub in doubt.",
		}),
	}
	for _, projection := range schema.Names() {
		m.stopped.WithLabelValues(projection)
		m.stoppedByOperator.WithLabelValues(projection)
		m.events.WithLabelValues(projection)
		m.commits.WithLabelValues(projection)
		m.interruptions.WithLabelValues(projection)
	}
	return m
}

// setOperatorStops sets which projections operators have stopped.
func (m *metrics) setOperatorStops(stops []query.HubcloudStop) {
	for _, projection := range schema.Names() {
		value := 0.0
		if _, stopped := schema.StopOf(stops, projection); stopped {
			value = 1
		}
		m.stoppedByOperator.WithLabelValues(projection).Set(value)
	}
}

// setLags sets the positions, heads and lags of the projections.
func (m *metrics) setLags(all []schema.Status) {
	for _, p := range all {
		m.sequence.WithLabelValues(p.Name).Set(float64(p.Sequence))
		m.head.WithLabelValues(p.Name).Set(float64(p.Head))
		m.lagEvents.WithLabelValues(p.Name).Set(float64(p.Lag))
		m.lagSeconds.WithLabelValues(p.Name).Set(p.Behind.Seconds())
	}
}

// setReported sets how many last reported states of a journal are in memory.
func (m *metrics) setReported(journal, hubs, channels int) {
	label := strconv.Itoa(journal)
	m.hubs.WithLabelValues(label).Set(float64(hubs))
	m.channels.WithLabelValues(label).Set(float64(channels))
}

// stopLeading removes the series that only the process that projects may have.
func (m *metrics) stopLeading() {
	m.leading.Set(0)
	for _, gauge := range []*prometheus.GaugeVec{
		m.sequence, m.head, m.lagEvents, m.lagSeconds, m.hubs, m.channels,
	} {
		gauge.Reset()
	}
	for _, projection := range schema.Names() {
		m.stopped.WithLabelValues(projection).Set(0)
	}
	m.setOperatorStops(nil)
}
