package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
)

// LastEvent is the last event in a hub's log of the hub or of the cloud.
type LastEvent struct {
	Seq uint64
	// Time is when the event was stored.
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
	if _, _, err := l.end(ctx, hub); err != nil {
		return nil, err
	}
	var events []LastEvent
	tip, _ := l.cfg.Journal.Tip(hub)
	for _, seq := range []uint64{tip.HubEvent, tip.CloudEvent} {
		if seq == 0 {
			continue
		}
		records, err := l.records(ctx, hub, seq, seq)
		var expired *goneError
		if errors.As(err, &expired) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("hub log of %s: last events: %w", hub, err)
		}
		event, err := lastEvent(&records[0])
		if err != nil {
			return nil, fmt.Errorf("hub log of %s: last events: %w", hub, err)
		}
		event.FromCloud = seq == tip.CloudEvent
		events = append(events, event)
	}
	return events, nil
}

func lastEvent(m *stored) (LastEvent, error) {
	kind, err := payloadType(m.data)
	if err != nil {
		return LastEvent{}, fmt.Errorf("sequence %d: %w", m.seq, err)
	}
	return LastEvent{
		Seq: m.seq, Time: m.at, EpochID: m.epoch, OwnLog: m.ownLog, Through: m.number,
		Connection: m.connection, Type: kind,
	}, nil
}

// LastSequence returns the last sequence of the hub's log, of events and commands alike, also of an
// expired record; 0 for a log that never had one.
func (l *Logs) LastSequence(ctx context.Context, hub domain.HubID) (uint64, error) {
	last, _, err := l.end(ctx, hub)
	return last, err
}
