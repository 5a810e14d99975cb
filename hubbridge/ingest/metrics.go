package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/hubbridge/codec"
	"hubcloud/streams/telemetry"
)

// Metrics are the metrics of all shards of a process.
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

// NewMetrics returns the metrics, registered with r unless r is nil.
func NewMetrics(r prometheus.Registerer) *Metrics {
	metric := telemetry.NewMetrics(r, "hubbridge")
	gaps := metric.Counters("gaps_total", "Gaps recorded in hubs' event logs (hub.events_skipped), by cause: "+
		"`lost`, the hub dropped events before they were acknowledged, which rises after a long outage; "+
		"`malformed`, the hub sent an event that cannot be stored.", "cause", "lost", "malformed")
	transitions := metric.Counters("presence_transitions_total", "Changes of hubs between online and offline, by "+
		"the new status. If both rise together, hubs connect and disconnect repeatedly.",
		"status", "online", "offline")
	return &Metrics{
		stored: metric.Counter("events_stored_total", "Stored events of hubs."),
		repeats: metric.Counter("events_repeated_total", "Events that hubs sent again although they were already "+
			"stored. A rise means that acks do not reach hubs in time."),
		lost: metric.Counter("events_lost_total", "Events that hubs reported as lost."),
		unowned: metric.Counter("events_unowned_total", "Events that were acknowledged and not stored because no "+
			"organization has their hub."),
		flawed: metric.Counters("events_malformed_total", "Malformed events of hubs, recorded as skipped, by "+
			"defect. A rise means faulty firmware.", "flaw", telemetry.Values(codec.Flaws())...),
		gapLost:      gaps.WithLabelValues("lost"),
		gapMalformed: gaps.WithLabelValues("malformed"),
		beyond: metric.Counter("messages_beyond_total", "Events messages that began after the next expected "+
			"number. None of their events were stored; the hub sends them again."),
		unreadable: metric.Counter("messages_unreadable_total", "Events messages that were dropped because they "+
			"were unreadable or too big."),
		strays: metric.Counter("messages_stray_total", "Events messages from a log that the hub abandoned at a "+
			"reset; they are ignored."),
		shed: metric.Counter("messages_shed_total", "Messages of hubs that were dropped because the inbox was "+
			"full: a hub sends too much, or the broker stores too slowly."),
		dropped: metric.Counter("messages_dropped_total", "Messages of hubs that the broker's client dropped "+
			"because they were not received fast enough. Hubs send them again."),
		withheld: metric.Counter("acks_withheld_total", "Messages of hubs that got no ack because they could not "+
			"be stored, or because this replica lost their shard. A lasting rise means that the broker does not "+
			"store."),
		acks:   metric.Counter("acks_total", "Acks sent to hubs."),
		resets: metric.Counter("resets_total", "Resets of hubs; each started a new epoch of the event log."),
		conflicts: metric.Counter("conflicts_total", "Writes that conflicted with another writer, or whose "+
			"outcome is unknown; they are tried again."),
		hellos: metric.Counters("hellos_total", "Hellos of hubs, by outcome. `limited` means that a hub resets or "+
			"says hello too often: it gets no ack, and the log and `hubcloud doctor` name it.",
			"outcome", "ok", "unreadable", "protocol", "limited"),
		online:   transitions.WithLabelValues("online"),
		offline:  transitions.WithLabelValues("offline"),
		sessions: metric.Gauge("sessions", "Hubs whose state this process holds in memory."),
		inbox: metric.Gauge("inbox_bytes", "Bytes of hubs' messages in inboxes. A value that stays high means "+
			"that the broker stores more slowly than hubs send."),
		// From a write beside the broker to one that waits for a leader.
		batch: metric.Histogram("batch_duration_seconds", "Seconds from receiving the events messages of a hub "+
			"that form one batch until they were stored and acknowledged.", telemetry.LatencyBuckets(.0001, 10)),
	}
}
