package hubviews

import (
	"context"
	"time"

	"hubcloud/domain"
)

// auditAway records that no server answers for the stream of a hub. A view that has no records to
// be written is left to a repair once that has lasted for AwayDelay; others are with one already.
func (s *shard) auditAway(hub domain.HubID) {
	if _, ok := s.views.cfg.Index.Tip(hub); !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.view(hub)
	v.setAway(true)
	if (v.state == stateNew || v.state == stateCurrent) &&
		time.Since(v.awaySince) >= s.views.cfg.AwayDelay {
		v.fallBehind(noCommit)
	}
}

// setAway records whether the server of a view's stream is away.
func (s *shard) setAway(v *view, away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.setAway(away)
}

// setAway records whether the server of the stream is away. The caller must hold shard.mu.
func (v *view) setAway(away bool) {
	views := v.shard.views
	switch {
	case away && v.awaySince.IsZero():
		v.awaySince = time.Now()
		views.away.Add(1)
		views.cfg.Metrics.away.Inc()
	case !away && !v.awaySince.IsZero():
		v.awaySince = time.Time{}
		views.away.Add(-1)
		views.cfg.Metrics.away.Dec()
	}
}

// abandon decides what becomes of a stream whose servers are all away, for the reason given: it
// reports whether the stream is to be written anew on another server, and returns the reason as the
// error as long as it is not. A stream that may have messages which the journal does not have waits
// for its servers.
func (r *repair) abandon(ctx context.Context, reason error) (abandoned bool, err error) {
	r.mu.Lock()
	r.view.setAway(true)
	since := r.view.awaySince
	r.mu.Unlock()
	if time.Since(since) < r.views.cfg.AwayDelay {
		return false, reason
	}
	tip, ok := r.views.cfg.Index.Tip(r.view.hub)
	if !ok {
		return false, reason
	}
	covered, err := r.views.cfg.Reader.Covers(ctx, r.view.hub, tip)
	if err != nil {
		return false, err
	}
	if !covered {
		return false, reason
	}
	return true, nil
}
