package views

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// auditPause is the pause before an audit that failed is tried again.
const auditPause = 10 * time.Second

// audit compares all views with the journal, and leaves those that are missing, too short or have a
// gap to repairs: also those that no former run has written to for long. It lists the streams,
// which costs little for each. One server keeps what it has; in a cluster, servers are replaced,
// wiped and lost, so audit goes on until ctx ends.
func (g *group) audit(ctx context.Context) error {
	for {
		began := time.Now()
		for left := g.own(); ; {
			left = slices.DeleteFunc(left, func(s *shard) bool { return s.audit(ctx) })
			if len(left) == 0 {
				break
			}
			if !streams.Sleep(ctx, auditPause) {
				return nil
			}
		}
		if !g.cfg.Conns.Clustered() || !g.awaitAudit(ctx, began) {
			return nil
		}
	}
}

// awaitAudit waits until the next audit is due: after AuditEvery, after a tenth of that while views
// are away, and at once when a server has started since the last audit began. A server that starts
// finds its streams one after the other, so for the next tenth of AuditEvery the audits are a
// hundredth of it apart. awaitAudit returns false if ctx ended first.
func (g *group) awaitAudit(ctx context.Context, began time.Time) bool {
	pause := g.cfg.AuditEvery
	switch {
	case time.Since(g.cfg.ServerStarted()) < g.cfg.AuditEvery/10:
		pause /= 100
	case g.away.Load() > 0:
		pause /= 10
	}
	due := time.Now().Add(pause)
	for time.Now().Before(due) && g.cfg.ServerStarted().Before(began) {
		if !streams.Sleep(ctx, min(maintainEvery, pause)) {
			return false
		}
	}
	return ctx.Err() == nil
}

// audit compares the views of a shard. It reports whether it is done.
func (s *shard) audit(ctx context.Context) (done bool) {
	began := time.Now()
	listed := map[domain.HubID]bool{}
	var back []domain.HubID
	missing, err := s.lists.List(ctx, func(page []jetstream.StreamInfo) (more bool) {
		for i := range page {
			hub, ok := streams.HubOfStream(page[i].Config.Name)
			if !ok || jsapi.CheckLeader(&page[i]) != nil {
				continue // a stream whose servers are away is listed without its state
			}
			listed[hub] = true
			if s.auditOne(ctx, hub, &page[i], began) {
				back = append(back, hub)
			}
		}
		return ctx.Err() == nil
	})
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		s.group.cfg.Logger.Warn("hub logs not compared with the journal", "error", err)
		return false
	}
	for _, name := range missing { // no server answers for them now
		if hub, ok := streams.HubOfStream(name); ok {
			listed[hub] = true
			s.auditAway(hub)
		}
	}
	for hub := range s.group.cfg.Journal.Tips(s.group.number) {
		if s.group.shardOf(hub) == s && !listed[hub] {
			s.auditOne(ctx, hub, nil, began)
		}
	}
	for _, hub := range back {
		s.mu.Lock()
		v := s.hubs[hub]
		s.mu.Unlock()
		s.group.retryNow(v)
	}
	s.group.step("audited")
	return true
}

// auditOne leaves a view to a repair if its stream does not look like the journal's log. info is
// nil without a stream. A repair looks again, so it is harmless for a complete view. The state was
// requested at asked or later. back reports that the stream's server was away.
func (s *shard) auditOne(
	ctx context.Context, hub domain.HubID, info *jetstream.StreamInfo, asked time.Time,
) (back bool) {
	tip, ok := s.group.cfg.Journal.Tip(hub)
	if !ok {
		return false
	}
	var state *jetstream.StreamState
	released := false
	if info != nil {
		state = &info.State
		if state.Msgs > 0 {
			var err error
			released, err = s.group.cfg.IsReleased(ctx, hub)
			released = released && err == nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.hubs[hub]
	if v != nil && !v.awaySince.IsZero() {
		v.setAway(false)
		back = true
	}
	switch {
	case v == nil || !v.current && !v.repairing:
		if released || state == nil || state.LastSeq != tip.Seq || state.NumDeleted > 0 ||
			lacksFront(info, tip.Time, s.group.cfg.Now(), s.group.cfg.Retention) {
			s.view(hub).fallBehind()
		}
	case v.current:
		// An end that became known after the request may be missing in the state.
		known := v.endSince.Before(asked)
		switch {
		case released, state != nil && state.NumDeleted > 0,
			known && (state == nil || state.LastSeq < v.end):
			v.setBehind(true)
			v.fallBehind()
		case known:
			v.endSince = asked
		}
	}
	return back
}

// auditAway records that no server answers for the stream of a hub. A view that has no records to
// be written is left to a repair once that has lasted for AwayDelay; others are with one already.
func (s *shard) auditAway(hub domain.HubID) {
	if _, ok := s.group.cfg.Journal.Tip(hub); !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view(hub)
	v.setAway(true)
	if !v.repairing && time.Since(v.awaySince) >= s.group.cfg.AwayDelay {
		v.fallBehind()
	}
}
