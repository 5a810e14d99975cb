package feed

import (
	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// Observer gets the events of all logs as their commits become durable.
type Observer interface {
	// Wants reports whether the observer takes an event.
	Wants(r *journal.Record) bool
	// Received gets the events that the observer wants of commits of one group, in the order of the
	// journal. It must not block, nor keep the slice or the records. Different groups may call it
	// at the same time.
	Received(group int, events []ReceivedEvent)
}

// ReceivedEvent is an event, and its form for readers, which is encoded once for all of them.
type ReceivedEvent struct {
	Record *journal.Record
	Event  domain.EncodedEvent
}

// Observe makes o the observer of all later commits, in place of the former one.
func (l *Logs) Observe(o Observer) { l.observer.Store(&o) }

// observe appends the records of a log that the observer wants.
func (l *Logs) observe(
	o Observer, events []ReceivedEvent, records []journal.Record,
) []ReceivedEvent {
	for i := range records {
		r := &records[i]
		if !r.Kind.IsEvent() || !o.Wants(r) {
			continue
		}
		e, err := storedRecord(r).encode()
		if err != nil {
			l.cfg.Logger.Error("event in hub log unreadable", "hub_id", r.Hub, "error", err)
			continue
		}
		events = append(events, ReceivedEvent{r, e})
	}
	return events
}
