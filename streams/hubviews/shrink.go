package hubviews

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// shrinkPause is the pause after a stream got one copy, so that the cluster's leader has time for
// others.
const shrinkPause = 200 * time.Millisecond

// shrink removes all copies but one of those of the streams that have nothing which the journal does
// not have: streams from before there was a journal, once it has run for its retention. The others
// are left to the next audit.
func (s *shard) shrink(ctx context.Context, replicated []domain.HubID) {
	left := len(replicated)
	defer func() { s.setReplicated(left) }()
	s.setReplicated(left)
	for _, hub := range replicated {
		tip, ok := s.views.cfg.Index.Tip(hub)
		if !ok {
			continue // only the stream knows where the log ends
		}
		covered, err := s.views.cfg.Reader.Covers(ctx, hub, tip)
		if err == nil && covered {
			err = s.shrinkOne(ctx, hub)
		}
		if err != nil {
			if ctx.Err() == nil {
				s.views.cfg.Logger.Warn("copies of a hub log not removed", "hub_id", hub, "error", err)
			}
			return
		}
		if !covered {
			continue
		}
		left--
		if !streams.Sleep(ctx, shrinkPause) {
			return
		}
	}
}

// shrinkOne removes all copies of a stream but one.
func (s *shard) shrinkOne(ctx context.Context, hub domain.HubID) error {
	info, err := s.api.Info(ctx, streams.HubStream(hub))
	if err != nil {
		return err
	}
	s.views.step("shrink")
	config := info.Config
	config.Replicas = 1
	ctx, cancel := context.WithTimeout(ctx, createTimeout)
	defer cancel()
	if _, err := s.js.UpdateStream(ctx, config); err != nil {
		return fmt.Errorf("update stream %s: %w", config.Name, err)
	}
	return nil
}

// setReplicated records how many streams have several copies.
func (s *shard) setReplicated(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.views.cfg.Metrics.replicated.Add(float64(n - s.replicated))
	s.replicated = n
}
