package hubviews

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
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

// audit compares all views with the journal, and leaves those that are missing, too short or have a
// gap to repairs: also those that no former run has written to for long. It lists the streams,
// which costs little for each. One server keeps what it has; in a cluster, servers are replaced,
// wiped and lost, so audit goes on until ctx ends.
func (v *Views) audit(ctx context.Context) error {
	for {
		began := time.Now()
		for left := v.ownShards(); ; {
			left = slices.DeleteFunc(left, func(s *shard) bool { return s.audit(ctx) })
			if len(left) == 0 {
				break
			}
			if !streams.Sleep(ctx, auditPause) {
				return nil
			}
		}
		v.audited.Store(&began)
		if !v.cfg.Conns.Clustered() || !v.awaitAudit(ctx, began) {
			return nil
		}
	}
}

// awaitAudit waits until the next audit is due: after AuditEvery, after a tenth of that while views
// are away, and at once when a server has started since the last audit began. A server that starts
// finds its streams one after the other, so for the next tenth of AuditEvery the audits are a
// hundredth of it apart. awaitAudit returns false if ctx ended first.
func (v *Views) awaitAudit(ctx context.Context, began time.Time) bool {
	pause := v.cfg.AuditEvery
	switch {
	case time.Since(v.cfg.ServerStarted()) < v.cfg.AuditEvery/10:
		pause /= 100
	case v.away.Load() > 0:
		pause /= 10
	}
	due := time.Now().Add(pause)
	for time.Now().Before(due) && v.cfg.ServerStarted().Before(began) {
		if !streams.Sleep(ctx, min(maintainEvery, pause)) {
			return false
		}
	}
	return ctx.Err() == nil
}

// awaitAudited waits until all views were compared with the journal since a server has started. The
// error is ctx's, or ErrStopped.
func (v *Views) awaitAudited(ctx context.Context) error {
	for {
		started, audited := v.cfg.ServerStarted(), v.audited.Load()
		if started.IsZero() || audited != nil && audited.After(started) {
			return nil
		}
		select {
		case <-time.After(maintainEvery / 10):
		case <-ctx.Done():
			return fmt.Errorf("hub views: not compared since a server has started: %w", ctx.Err())
		case <-v.stopped:
			return ErrStopped
		}
	}
}

// audit compares the views of a shard. It reports whether it is done.
func (s *shard) audit(ctx context.Context) (done bool) {
	began := time.Now()
	listed := map[string]bool{}
	var replicated, back []domain.HubID
	missing, err := s.lists.List(ctx, func(page []jetstream.StreamInfo) (more bool) {
		for i := range page {
			name, ok := strings.CutPrefix(page[i].Config.Name, streams.HubStream(""))
			hub, valid := domain.ParseHubID(name)
			if !ok || !valid || jsapi.CheckLeader(&page[i]) != nil {
				continue // a stream whose servers are away is listed without its state
			}
			listed[string(hub)] = true
			if s.auditOne(hub, &page[i].State, began) {
				back = append(back, hub)
			}
			if page[i].Config.Replicas > 1 {
				replicated = append(replicated, hub)
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
		name = strings.TrimPrefix(name, streams.HubStream(""))
		listed[name] = true
		s.auditAway(domain.HubID(name))
	}
	for hub := range s.views.cfg.Index.Tips() {
		if s.views.shardOf(hub) == s && !listed[string(hub)] {
			s.auditOne(hub, nil, began)
		}
	}
	for _, hub := range back {
		s.mu.Lock()
		v := s.hubs[hub]
		s.mu.Unlock()
		s.views.retryNow(v)
	}
	s.shrink(ctx, replicated)
	s.views.step("audited")
	return true
}

// auditOne leaves a view to a repair if its stream does not look like the journal's log. The state is nil without a
// stream. A repair looks again, so it is harmless for a complete view. The state was requested at
// asked or later. back reports that the stream's server was away.
func (s *shard) auditOne(
	hub domain.HubID, state *jetstream.StreamState, asked time.Time,
) (back bool) {
	tip, ok := s.views.cfg.Index.Tip(hub)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.hubs[hub]
	if v != nil && !v.awaySince.IsZero() {
		v.setAway(false)
		back = true
	}
	switch {
	case v == nil || v.state == stateNew:
		if state == nil || state.LastSeq != tip.Seq || state.NumDeleted > 0 ||
			s.lacksFront(state, tip.Time) {
			s.view(hub).fallBehind(noCommit)
		}
	case v.state == stateCurrent:
		// An end that became known after the request may be missing in the state.
		settled := v.endSince.Before(asked)
		switch {
		case state != nil && state.NumDeleted > 0,
			settled && (state == nil || state.LastSeq < v.end):
			v.fallBehind(noCommit)
		case settled:
			v.endSince = asked
		}
	}
	return back
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
