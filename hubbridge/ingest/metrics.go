package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/hubbridge/codec"
)

// Metrics counts what all shards of a process do.
type Metrics struct {
	stored, repeats, beyond, lost, strays, resets prometheus.Counter
	unreadable, shed, dropped, withheld, acks     prometheus.Counter
	conflicts, unowned                            prometheus.Counter
	gapLost, gapMalformed                         prometheus.Counter
	online, offline                               prometheus.Counter
	flawed, hellos                                *prometheus.CounterVec
	batch                                         prometheus.Histogram
	sessions, inbox                               prometheus.Gauge
}

// NewMetrics makes the metrics and registers them, unless r is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(
			prometheus.CounterOpts{Name: "hubcloud_hubbridge_" + name, Help: help},
		)
		all = append(all, c)
		return c
	}
	vector := func(name, help, label string, values ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(
			prometheus.CounterOpts{Name: "hubcloud_hubbridge_" + name, Help: help}, []string{label},
		)
		for _, value := range values {
			c.WithLabelValues(value)
		}
		all = append(all, c)
		return c
	}
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(
			prometheus.GaugeOpts{Name: "hubcloud_hubbridge_" + name, Help: help},
		)
		all = append(all, g)
		return g
	}
	flaws := make([]string, 0, len(codec.Flaws()))
	for _, flaw := range codec.Flaws() {
		flaws = append(flaws, string(flaw))
	}
	gaps := vector(
		"gaps_total",
		"Gaps that were marked in hubs' event logs (hub.events_skipped), by cause: `lost`, the hub had dropped events "+
			"before they were acknowledged, which rises after a long outage; `malformed`, it "+
			"sent an event that cannot be stored.",
		"cause",
		"lost",
		"malformed",
	)
	transitions := vector(
		"presence_transitions_total",
		"Changes of hubs' status, by the new one. Both rising together is hubs that flap.", "status",
		"online", "offline",
	)
	m := &Metrics{
		stored: counter("events_stored_total", "Stored events of hubs."),
		repeats: counter(
			"events_repeated_total",
			"Events of hubs that were stored already and passed over. A rise is acks that do not reach hubs in time.",
		),
		lost: counter("events_lost_total", "Events that hubs reported as lost."),
		unowned: counter(
			"events_unowned_total",
			"Events that were acknowledged and not kept because no organization has their hub.",
		),
		flawed: vector(
			"events_malformed_total",
			"Events of hubs that were marked as skipped, by what was wrong. A rise is a firmware with a defect.",
			"flaw",
			flaws...),
		gapLost:      gaps.WithLabelValues("lost"),
		gapMalformed: gaps.WithLabelValues("malformed"),
		beyond: counter(
			"messages_beyond_total",
			"Events messages that began beyond the next number; nothing of them was stored, and the hub sends again.",
		),
		unreadable: counter(
			"messages_unreadable_total",
			"Events messages dropped because they were unreadable or too large.",
		),
		strays: counter(
			"messages_stray_total", "Events messages of a log that its hub has ended by a reset.",
		),
		shed: counter(
			"messages_shed_total",
			"Messages of hubs that did not fit into their queue: a hub floods, or the broker stores too slowly.",
		),
		dropped: counter(
			"messages_dropped_total",
			"Messages of hubs that the broker's client dropped because it was not read fast "+
				"enough. Hubs send them again.",
		),
		withheld: counter(
			"acks_withheld_total",
			"Messages of hubs that got no ack because they could not be stored, or because their "+
				"shard is not this replica's any more. Any lasting rise is a broker that does not store.",
		),
		acks:   counter("acks_total", "Acks sent to hubs."),
		resets: counter("resets_total", "New event logs started because a hub was reset."),
		conflicts: counter(
			"conflicts_total",
			"Writes that found that somebody else had written, or whose answer was lost; they are tried again.",
		),
		hellos: vector(
			"hellos_total",
			"Hellos of hubs, by what became of them. `limited` is a hub that is reset, or says "+
				"hello, without end: it gets no ack, and the log and "+
				"`hubcloud doctor` name it.",
			"outcome",
			"ok",
			"unreadable",
			"protocol",
			"limited",
		),
		online:   transitions.WithLabelValues("online"),
		offline:  transitions.WithLabelValues("offline"),
		sessions: gauge("sessions", "Hubs that this process has in memory."),
		inbox: gauge(
			"inbox_bytes",
			"Bytes of hubs' messages that wait for their turn. One that stays high is a broker "+
				"that stores more slowly than hubs send.",
		),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "hubcloud_hubbridge_batch_duration_seconds",
			Help: "Seconds from taking up events messages of a hub, as many as go into one " +
				"batch, until they were stored and acknowledged.",
			// From a write beside the broker to one that waits for a leader.
			Buckets: []float64{
				.0001,
				.00025,
				.0005,
				.001,
				.0025,
				.005,
				.01,
				.025,
				.05,
				.1,
				.25,
				.5,
				1,
				2.5,
				5,
				10,
			},
		}),
	}
	all = append(all, m.batch)
	if r != nil {
		r.MustRegister(all...)
	}
	return m
}
