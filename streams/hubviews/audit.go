package hubviews

import (
	"context"
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

const (
	// auditPause is the pause before an audit that failed is tried again.
	auditPause = 10 * time.Second
	// quietFor is how old the last record of a log must be for the listed end of its view to count.
	quietFor = time.Minute
)

// audit compares all views with the journal, and leaves those that are missing, too short or have a
// gap to repairs: also those that no former run has written to for long. It lists the streams,
// which costs little for each. One server keeps what it has; in a cluster, servers are replaced,
// wiped and lost, so audit goes on until ctx ends.
func (v *Views) audit(ctx context.Context) error {
	for {
		for _, s := range v.ownShards() {
			for !s.audit(ctx) {
				if !streams.Sleep(ctx, auditPause) {
					return nil
				}
			}
		}
		if v.cfg.Conns.Cloud.ConnectedClusterName() == "" {
			return nil
		}
		pause := v.cfg.AuditEvery
		if v.away.Load() > 0 {
			pause /= 10
		}
		if !streams.Sleep(ctx, pause) {
			return nil
		}
	}
}

// audit compares the views of a shard. It reports whether it is done.
func (s *shard) audit(ctx context.Context) (done bool) {
	listed := map[string]bool{}
	var replicated, back []domain.HubID
	missing, err := s.api.List(ctx, func(page []jetstream.StreamInfo) (more bool) {
		for i := range page {
			name, ok := strings.CutPrefix(page[i].Config.Name, streams.HubStream(""))
			hub, valid := domain.ParseHubID(name)
			if !ok || !valid || jsapi.CheckLeader(&page[i]) != nil {
				continue // a stream whose servers are away is listed without its state
			}
			listed[string(hub)] = true
			if s.auditOne(hub, &page[i].State) {
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
			s.auditOne(hub, nil)
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

// auditOne leaves a view to a repair if its stream looks incomplete. The state is nil without a
// stream. A repair looks again, so it is harmless for a complete view. back reports that the
// stream's server was away.
func (s *shard) auditOne(hub domain.HubID, state *jetstream.StreamState) (back bool) {
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
		if state == nil || state.LastSeq < tip.Seq || state.NumDeleted > 0 ||
			s.lacksFront(state, tip.Time) {
			s.view(hub).fallBehind(noCommit)
		}
	case v.state == stateCurrent:
		// Its end is known, and the listed one may be older by the time that listing takes.
		quiet := s.views.cfg.Now().Sub(tip.Time) > quietFor
		if state != nil && state.NumDeleted > 0 ||
			quiet && (state == nil || state.LastSeq < v.end) {
			v.fallBehind(noCommit)
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
