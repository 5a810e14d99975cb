package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/hubbridge/wire"
)

// Metrics counts what all shards of a process do.
type Metrics struct {
	stored, repeats, beyond, lost, strays, resets prometheus.Counter
	unreadable, shed, dropped, withheld, acks     prometheus.Counter
	conflicts                                     prometheus.Counter
	flawed, hellos, transitions                   *prometheus.CounterVec
	sessions                                      prometheus.Gauge
}

// NewMetrics makes the metrics and registers them, unless r is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	var all []prometheus.Collector
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "hubcloud_hubbridge_" + name, Help: help})
		all = append(all, c)
		return c
	}
	vector := func(name, help, label string, values ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hubcloud_hubbridge_" + name, Help: help}, []string{label})
		for _, value := range values {
			c.WithLabelValues(value)
		}
		all = append(all, c)
		return c
	}
	flaws := make([]string, 0, len(wire.Flaws()))
	for _, flaw := range wire.Flaws() {
		flaws = append(flaws, string(flaw))
	}
	m := &Metrics{
		stored:      counter("events_stored_total", "Events of hubs that were stored."),
		repeats:     counter("events_repeated_total", "Events of hubs that were stored already and passed over."),
		lost:        counter("events_lost_total", "Numbers of events that hubs said they had lost."),
		flawed:      vector("events_malformed_total", "Events of hubs that were marked as skipped, by what was wrong.", "flaw", flaws...),
		beyond:      counter("messages_beyond_total", "Events messages that began beyond the next number; nothing of them was stored."),
		unreadable:  counter("messages_unreadable_total", "Events messages that were dropped whole."),
		strays:      counter("messages_stray_total", "Events messages of a log that its hub has given up."),
		shed:        counter("messages_shed_total", "Messages of hubs that did not fit into their queue."),
		dropped:     counter("messages_dropped_total", "Messages of hubs that the broker's client dropped because it was not read fast enough."),
		withheld:    counter("acks_withheld_total", "Messages of hubs that got no ack because they could not be stored."),
		acks:        counter("acks_total", "Acks sent to hubs."),
		resets:      counter("resets_total", "Event logs begun anew because their hub was reset."),
		conflicts:   counter("conflicts_total", "Writes that found that somebody else had written, or whose answer was lost."),
		hellos:      vector("hellos_total", "Hellos of hubs, by what became of them.", "outcome", "ok", "unreadable", "protocol"),
		transitions: vector("presence_transitions_total", "Changes of hubs' status, by the new one.", "status", "online", "offline"),
		sessions: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "hubcloud_hubbridge_sessions", Help: "Hubs that this process has in memory.",
		}),
	}
	all = append(all, m.sessions)
	if r != nil {
		r.MustRegister(all...)
	}
	return m
}
