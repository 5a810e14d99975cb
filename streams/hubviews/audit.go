package hubviews

import (
	"context"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
)

// replay leaves to repairs all views whose logs were written to after the position that a former
// run has found synced. It is called before records are added.
func (v *Views) replay() {
	count := 0
	for hub, tip := range v.cfg.Index.Tips() {
		s := v.shardOf(hub)
		if s == nil || tip.Commit <= v.compared {
			continue
		}
		count++
		s.mu.Lock()
		s.view(hub).fallBehind(v.compared + 1)
		s.mu.Unlock()
	}
	if count > 0 {
		v.cfg.Logger.Info("comparing hub logs with the journal", "count", count, "from", v.compared)
	}
}

// auditPause is the pause before an audit that failed is tried again.
const auditPause = 10 * time.Second

// audit compares all views with the journal once, and leaves those that are missing, too short or
// have a gap to repairs: also those that no former run has written to for long. It lists the
// streams, which costs little for each.
func (v *Views) audit(ctx context.Context) error {
	for _, s := range v.ownShards() {
		for !s.audit(ctx) {
			if !streams.Sleep(ctx, auditPause) {
				return nil
			}
		}
	}
	return nil
}

// audit compares the views of a shard. It reports whether it is done.
func (s *shard) audit(ctx context.Context) (done bool) {
	listed := map[string]bool{}
	missing, err := s.api.List(ctx, func(page []jetstream.StreamInfo) (more bool) {
		for i := range page {
			name, ok := strings.CutPrefix(page[i].Config.Name, streams.HubStream(""))
			if hub, valid := domain.ParseHubID(name); ok && valid {
				listed[string(hub)] = true
				s.auditOne(hub, &page[i].State)
			}
		}
		return ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		s.views.cfg.Logger.Warn("hub logs not compared with the journal", "error", err)
		return false
	}
	for _, name := range missing { // no server answers for them now
		listed[strings.TrimPrefix(name, streams.HubStream(""))] = true
	}
	for hub := range s.views.cfg.Index.Tips() {
		if s.views.shardOf(hub) == s && !listed[string(hub)] {
			s.auditOne(hub, nil)
		}
	}
	s.views.step("audited")
	return true
}

// auditOne leaves a view to a repair if its stream looks incomplete. The state is nil without a
// stream. A repair looks again, so it is harmless for a complete view.
func (s *shard) auditOne(hub domain.HubID, state *jetstream.StreamState) {
	tip, ok := s.views.cfg.Index.Tip(hub)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.hubs[hub]
	switch {
	case v == nil || v.state == stateNew:
		if state == nil || state.LastSeq < tip.Seq || state.NumDeleted > 0 ||
			s.lacksFront(state, tip.Time) {
			s.view(hub).fallBehind(noCommit)
		}
	case v.state == stateCurrent:
		// Its end is known, and the listed one may be older.
		if state != nil && state.NumDeleted > 0 {
			v.fallBehind(noCommit)
		}
	}
}

// lacksFront reports whether messages at the front of a stream may have been lost rather than have
// expired. last is the time of the log's last record.
func (s *shard) lacksFront(state *jetstream.StreamState, last time.Time) bool {
	expiring := s.views.cfg.Now().Add(time.Minute - s.views.cfg.Retention)
	switch {
	case state.FirstSeq <= 1:
		return false
	case state.Msgs == 0:
		return last.After(expiring)
	default:
		return state.FirstTime.After(expiring)
	}
}
