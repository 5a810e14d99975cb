package projector

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/projections/schema"
	"hubcloud/streams/telemetry"
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
	metric := telemetry.NewMetrics(registerer, "projections")
	const by = "projection"
	all := schema.Names()
	m := &metrics{
		sequence: metric.Gauges("sequence", "Sequence of the last event in the read models, as of at most 5 s ago.",
			by),
		head: metric.Gauges("head_sequence", "Sequence of the stream's last event, as of at most 5 s ago.", by),
		lagEvents: metric.Gauges("lag_events", "Events of the stream that are not yet in the read models, and "+
			"thus not in answers of the API, as of at most 5 s ago.", by),
		lagSeconds: metric.Gauges("lag_seconds", "Age of the oldest event that is not yet in the read models, as "+
			"of at most 5 s ago; 0 if there is none. More than a few seconds means that the projector does not "+
			"run or the database is slow.", by),
		stopped: metric.Gauges("stopped", "1 while an event that cannot be applied stops the projection. "+
			"`hubcloud projections status` shows the event and the reason.", by, all...),
		stoppedByOperator: metric.Gauges("stopped_by_operator", "1 while an operator has stopped the projection "+
			"(`hubcloud projections stop`). `hubcloud projections resume` starts it again.", by, all...),
		events: metric.Counters("events_total", "Events applied to the read models; of devices, commits of the "+
			"journals.", by, all...),
		// From half a millisecond to four seconds.
		commits: metric.Histograms("commit_duration_seconds", "Seconds to apply a batch of events in one "+
			"transaction. A rise means a slow database.", prometheus.ExponentialBuckets(0.0005, 2, 14), by),
		interruptions: metric.Counters("interruptions_total", "Times that a projection lost the database or the "+
			"broker and continued from its checkpoint. A rise means that one of them restarts or is not reachable.",
			by, all...),
		leading: metric.Gauge("leading", "1 while this process applies events to the read models. The sum over "+
			"all replicas is 1; 0 for long means that no process keeps the read models up to date."),
		hubs:     metric.Gauges("cached_hubs", "Hubs whose last reported state is in memory.", "journal"),
		channels: metric.Gauges("cached_channels", "Channels whose last reported state is in memory.", "journal"),
		rows:     metric.Counter("state_rows_total", "Rows of last reported states written."),
		unreadable: metric.Counter("unreadable_total", "Records of hub logs that could not be folded and put "+
			"their hub in doubt."),
	}
	for _, projection := range all {
		m.commits.WithLabelValues(projection)
	}
	return m
}

// setOperatorStops sets which projections operators have stopped.
func (m *metrics) setOperatorStops(stops []schema.HubcloudStop) {
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
