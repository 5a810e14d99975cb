package ingest

import (
	"context"
	"encoding/json"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/journal"
)

// handleObservation records the transitions that follow from an observation of one of the hub's
// connections: first in the event log of a hub with an organization, as one atomic batch, then in
// the presence bucket.
func (s *hubState) handleObservation(ctx context.Context, o presence.Observation) error {
	err := s.withState(ctx, func() error {
		now := s.now()
		transitions, pending := presence.Step(s.presence, s.pending, o, now)
		if len(pending) > len(s.pending) {
			s.shard.checkPresence(s.hub, takeoverGrace)
		}
		if err := s.recordTransitions(ctx, transitions, now); err != nil {
			return err
		}
		s.pending = pending
		return s.putPresence(ctx)
	})
	if err != nil {
		return err
	}
	if s.presence.Online {
		if s.helloPending {
			s.ackHello()
		}
		return nil
	}
	s.noteOffline()
	// The hub is offline: its log does not change for now.
	return s.flush(ctx)
}

// recordTransitions appends transitions to the event log of a hub with an organization, and then
// applies them to s.presence.
func (s *hubState) recordTransitions(
	ctx context.Context, transitions []presence.Transition, now time.Time,
) error {
	if len(transitions) == 0 {
		return nil
	}
	next, records := s.presence, make([]journal.Record, 0, len(transitions))
	next.HubID = s.hub
	for _, t := range transitions {
		next = t.Apply(next, now)
		typ, data := transitionEvent(t)
		records = append(records, s.cloudRecord(typ, now, data, next))
	}
	var err error
	if s.log.owned() {
		err = s.append(ctx, records)
	} else {
		err = s.requireLease()
	}
	if err != nil {
		return err
	}
	previous := s.presence
	s.presence, s.presenceDirty = next, true
	s.noteTransitions(transitions)
	for _, t := range transitions {
		s.shard.cfg.Metrics.count(t)
		if !t.Online {
			s.logConnection(ctx, previous, t, now)
		}
		previous = t.Apply(previous, now)
	}
	return nil
}

// transitionEvent returns the type and data of the event for a transition.
func transitionEvent(t presence.Transition) (typ string, data []byte) {
	if t.Online {
		return domain.EventHubConnected, []byte(`{}`)
	}
	data, err := json.Marshal(struct {
		Reason *string `json:"reason"`
	}{t.Reason})
	if err != nil {
		data = []byte(`{"reason":null}`) // a string always encodes
	}
	return domain.EventHubDisconnected, data
}

// count counts a recorded transition.
func (m *Metrics) count(t presence.Transition) {
	if t.Online {
		m.online.Inc()
	} else {
		m.offline.Inc()
	}
}

// putPresence writes the hub's presence to the bucket if it has changed.
func (s *hubState) putPresence(ctx context.Context) error {
	if !s.presenceDirty {
		return nil
	}
	if err := s.requireServing(); err != nil {
		return err
	}
	revision, err := s.shard.cfg.Presence.CompareAndSetJSON(
		ctx, string(s.hub), s.presence, s.presenceRevision,
	)
	if err != nil {
		s.presenceRead = false
		return s.writeFailed(err)
	}
	s.presenceRevision, s.presenceDirty = revision, false
	return nil
}
