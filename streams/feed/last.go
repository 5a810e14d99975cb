package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/views"
)

// LastEvent is the last event that a hub's stream has under one of its two event subjects.
type LastEvent struct {
	Seq uint64
	// Time is the event's own time in the log or, for one without, when it was stored.
	Time time.Time
	// FromCloud, EpochID, OwnLog, Through and Connection are as they were appended.
	FromCloud  bool
	EpochID    domain.EpochID
	OwnLog     string
	Through    uint64
	Connection string
	// Type is the event's type.
	Type string
}

// LastEvents returns the last event of the hub and the last event of the cloud, as far as they
// exist: everything that was stored before the call is seen. A log without events has none.
func (l *Logs) LastEvents(ctx context.Context, hub domain.HubID) ([]LastEvent, error) {
	bySubject, err := l.lastEvents(ctx, hub)
	if err != nil {
		return nil, fmt.Errorf("hub log of %s: last events: %w", hub, err)
	}
	var events []LastEvent
	for _, subject := range eventSubjects(hub) {
		if event, ok := bySubject[subject]; ok {
			events = append(events, event)
		}
	}
	return events, nil
}

func eventSubjects(hub domain.HubID) []string {
	return []string{streams.HubEventSubject(hub), streams.CloudEventSubject(hub)}
}

// lastEvents returns the last events by their subjects.
func (l *Logs) lastEvents(
	ctx context.Context, hub domain.HubID,
) (map[string]LastEvent, error) {
	_, intact, err := l.streamEnd(ctx, hub)
	if err != nil {
		return nil, err
	}
	tip, ok := l.cfg.Journal.Tip(hub)
	if !ok {
		return map[string]LastEvent{}, nil
	}
	return l.lastEventsOf(ctx, hub, tip, intact)
}

// lastEventsOf returns the last events of a log that the journal has. One copy of the hub's stream
// returns both, if the stream is intact, since the copy has everything before the later one; what
// it lacks after that, because it was cut off from the others, comes from the journal. While the
// stream is away or damaged, all comes from the journal.
func (l *Logs) lastEventsOf(
	ctx context.Context, hub domain.HubID, tip journal.Tip, intact bool,
) (map[string]LastEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for pause := readPause; ; pause = min(2*pause, maxReadPause) {
		var events map[string]LastEvent
		var err error
		if intact {
			err = l.askStream(ctx, hub, func(ctx context.Context) (err error) {
				events, err = l.lastInStream(ctx, hub)
				return err
			})
			if err == nil {
				err = l.addJournaled(ctx, hub, events, tip.EventSeq())
			}
		}
		if !intact || err != nil && jsapi.IsTemporary(err) {
			events, err = l.lastInJournal(ctx, hub, tip)
		}
		if err == nil || !jsapi.IsTemporary(err) || !streams.Sleep(ctx, pause) {
			return events, err
		}
	}
}

// lastInJournal returns the last events from the journal.
func (l *Logs) lastInJournal(
	ctx context.Context, hub domain.HubID, tip journal.Tip,
) (map[string]LastEvent, error) {
	events := map[string]LastEvent{}
	for _, seq := range []uint64{tip.HubEvent, tip.CloudEvent} {
		if seq == 0 {
			continue
		}
		records, err := l.cfg.Journal.Records(ctx, hub, seq, seq, 1)
		switch {
		case errors.Is(err, journal.ErrGone): // expired
		case err != nil:
			return nil, err
		case l.cfg.Now().Sub(records[0].Time) <= l.cfg.Retention:
			if err := addRecord(events, &records[0]); err != nil {
				return nil, err
			}
		}
	}
	return events, nil
}

// lastInStream returns the last events that one copy of the hub's stream has. A missing stream has
// none.
func (l *Logs) lastInStream(
	ctx context.Context, hub domain.HubID,
) (map[string]LastEvent, error) {
	subjects := eventSubjects(hub)
	msgs, err := l.shard(hub).reads.Get(ctx, jsapi.BatchRequest{
		Stream: streams.HubStream(hub), LastOf: subjects, Messages: len(subjects),
	})
	if errors.Is(err, jsapi.ErrNoStream) {
		// Also the answer while no copy can be reached: the leader knows.
		if b, infoErr := l.streamBounds(ctx, hub); infoErr != nil || b.last == 0 {
			return map[string]LastEvent{}, infoErr
		}
	}
	if err != nil {
		return nil, err
	}
	events := make(map[string]LastEvent, len(subjects))
	for _, m := range msgs {
		subject := jsapi.Field(m.Header, jsapi.HeaderSubject)
		event, err := parseLast(hub, subject, m.Sequence, m.Header, m.Data)
		if err != nil {
			return nil, err
		}
		events[subject] = event
	}
	return events, nil
}

// addJournaled puts the events after the last of those given, up to a sequence, in their places. An
// event that the journal has no more has expired, or the stream would have it.
func (l *Logs) addJournaled(
	ctx context.Context, hub domain.HubID, events map[string]LastEvent, to uint64,
) error {
	from := uint64(1)
	for _, event := range events {
		from = max(from, event.Seq+1)
	}
	for from <= to {
		records, err := l.cfg.Journal.Records(ctx, hub, from, to, loadBytes)
		if errors.Is(err, journal.ErrGone) {
			oldest, oldestErr := l.cfg.Journal.Oldest(ctx, hub, time.Time{})
			switch {
			case errors.Is(oldestErr, journal.ErrGone), oldest > to:
				return nil
			case oldestErr != nil:
				return oldestErr
			case oldest > from:
				from = oldest
				continue
			}
		}
		if err != nil {
			return err
		}
		if len(records) == 0 {
			return errBehind
		}
		for i := range records {
			if l.cfg.Now().Sub(records[i].Time) > l.cfg.Retention {
				continue // expired: the journal keeps records for longer
			}
			if err := addRecord(events, &records[i]); err != nil {
				return err
			}
		}
		from = records[len(records)-1].Seq + 1
	}
	return nil
}

// addRecord puts a record in the place of the last event of its subject, if it is an event.
func addRecord(events map[string]LastEvent, r *journal.Record) (err error) {
	if !r.Kind.IsEvent() {
		return nil
	}
	event := LastEvent{
		Seq: r.Seq, Time: r.Time, FromCloud: r.Kind == journal.KindCloudEvent, EpochID: r.EpochID,
		OwnLog: r.OwnLog, Through: r.Through, Connection: r.Connection,
	}
	if event.Type, err = payloadType(r.Payload); err != nil {
		return fmt.Errorf("sequence %d: %w", r.Seq, err)
	}
	subject := streams.HubEventSubject(r.Hub)
	if event.FromCloud {
		subject = streams.CloudEventSubject(r.Hub)
	}
	events[subject] = event
	return nil
}

// parseLast reads the message of an event.
func parseLast(
	hub domain.HubID, subject string, seq uint64, header nats.Header, data []byte,
) (LastEvent, error) {
	event := LastEvent{
		Seq:        seq,
		FromCloud:  subject == streams.CloudEventSubject(hub),
		OwnLog:     header.Get(views.HeaderOwnLog),
		Connection: header.Get(views.HeaderConnection),
	}
	var err error
	if event.Time, err = views.Time(header); err != nil {
		return event, fmt.Errorf("headers of sequence %d: %w", seq, err)
	}
	if id, err := domain.ParseEpochID(header.Get(views.HeaderEpoch)); err == nil {
		event.EpochID = id
	}
	if event.OwnLog != "" {
		event.Through, err = strconv.ParseUint(header.Get(views.HeaderThrough), 10, 64)
		if err != nil {
			return event, fmt.Errorf("headers of sequence %d: %w", seq, err)
		}
	}
	if event.Type, err = payloadType(data); err != nil {
		return event, fmt.Errorf("sequence %d: %w", seq, err)
	}
	return event, nil
}

// LastSequence returns the last sequence of the hub's log, of events and commands alike, also of an
// expired record; 0 for a log that never had one.
func (l *Logs) LastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	last, _, err := l.end(ctx, hub)
	return last, err
}
