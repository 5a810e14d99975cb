package hublog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/logformat"
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
	if err := l.awaitView(ctx, hub); err != nil {
		return nil, fmt.Errorf("hub log of %s: %w", hub, err)
	}
	var events []LastEvent
	for _, subject := range []string{streams.HubEventSubject(hub), streams.CloudEventSubject(hub)} {
		event, ok, err := l.lastOf(ctx, hub, subject)
		if err != nil {
			return nil, fmt.Errorf("hub log of %s: last of %s: %w", hub, subject, err)
		}
		if ok {
			events = append(events, event)
		}
	}
	return events, nil
}

func (l *Logs) lastOf(
	ctx context.Context, hub domain.HubID, subject string,
) (event LastEvent, ok bool, err error) {
	msg, err := l.api(hub).GetLast(ctx, streams.HubStream(hub), subject)
	if errors.Is(err, jsapi.ErrNotFound) || errors.Is(err, jsapi.ErrNoStream) {
		return event, false, nil
	}
	if err != nil {
		return event, false, err
	}
	event = LastEvent{
		Seq:        msg.Sequence,
		Time:       msg.Time,
		FromCloud:  subject == streams.CloudEventSubject(hub),
		OwnLog:     msg.Header.Get(logformat.HeaderOwnLog),
		Connection: msg.Header.Get(logformat.HeaderConnection),
	}
	written, ok, err := logformat.Time(msg.Header)
	if err != nil {
		return event, false, fmt.Errorf("headers of sequence %d: %w", event.Seq, err)
	}
	if ok {
		event.Time = written
	}
	if id, err := domain.ParseEpochID(msg.Header.Get(logformat.HeaderEpoch)); err == nil {
		event.EpochID = id
	}
	if event.OwnLog != "" {
		event.Through, err = strconv.ParseUint(msg.Header.Get(logformat.HeaderThrough), 10, 64)
		if err != nil {
			return event, false, fmt.Errorf("headers of sequence %d: %w", event.Seq, err)
		}
	}
	if event.Type, err = payloadType(msg.Data); err != nil {
		return event, false, fmt.Errorf("sequence %d: %w", event.Seq, err)
	}
	return event, true, nil
}

// LastSequence returns the last sequence of the hub's log, of events and commands alike, also of an
// expired record; 0 for a log that never had one.
func (l *Logs) LastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	last, _, err := l.end(ctx, hub)
	return last, err
}

// awaitView waits until the hub's stream has all of the hub's log.
func (l *Logs) awaitView(ctx context.Context, hub domain.HubID) error {
	if l.cfg.Journal == nil {
		return nil
	}
	if _, _, err := l.end(ctx, hub); err != nil {
		return err
	}
	tip, ok := l.cfg.Journal.Tip(hub)
	if !ok {
		return nil
	}
	return l.cfg.Journal.AwaitView(ctx, hub, tip.Seq)
}
