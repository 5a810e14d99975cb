package ingest

import (
	"context"
	"encoding/json"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/hublog"
)

// observe deals with what the broker says about one of the hub's connections: it tells the
// transitions that follow, first in the event log of a hub that somebody has, all of them as one
// atomic batch, then in the presence bucket.
func (s *session) observe(ctx context.Context, o presence.Observation) error {
	cfg := &s.shard.cfg
	err := s.settle(ctx, func() error {
		now := s.now()
		transitions, held := presence.Step(s.presence, s.held, o, now)
		if len(held) > len(s.held) {
			cfg.Check(s.hub, takeoverGrace)
		}
		if len(transitions) > 0 {
			told, records := s.presence, make([]hublog.Record, 0, len(transitions))
			told.HubID = s.hub
			for _, t := range transitions {
				told = presence.After(told, t, now)
				typ, data := describe(t)
				records = append(records, s.linkRecord(typ, now, data, told))
			}
			if s.log.owned() {
				if err := s.append(ctx, records); err != nil {
					return err
				}
			}
			ended := s.presence
			s.presence, s.presenceDirty = told, true
			for _, t := range transitions {
				cfg.Metrics.count(t)
				if !t.Online {
					s.reportSession(ctx, ended, t, now)
				}
				ended = presence.After(ended, t, now)
			}
		}
		s.held = held
		return s.putPresence(ctx)
	})
	if err != nil {
		return err
	}
	if s.presence.Online {
		if s.greeting {
			s.greet()
		}
		return nil
	}
	// The hub is gone for now: whatever is known of its log is put aside.
	return s.flush(ctx)
}

// describe gives the type and data of the event about a transition.
func describe(t presence.Transition) (typ string, data []byte) {
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

func (m *Metrics) count(t presence.Transition) {
	if t.Online {
		m.online.Inc()
	} else {
		m.offline.Inc()
	}
}

// putPresence writes the presence bucket if it is behind what was told.
func (s *session) putPresence(ctx context.Context) error {
	if !s.presenceDirty {
		return nil
	}
	if err := s.mustHold(); err != nil {
		return err
	}
	revision, err := s.shard.cfg.Presence.CompareAndSetJSON(
		ctx, string(s.hub), s.presence, s.presenceRevision,
	)
	if err != nil {
		s.presenceRead = false
		return s.moved(err)
	}
	s.presenceRevision, s.presenceDirty = revision, false
	return nil
}
