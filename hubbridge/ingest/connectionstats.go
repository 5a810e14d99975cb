package ingest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
)

// connectionStats counts the messages of a hub since it connected, or since this replica began to
// serve it. The worker that handles the hub owns the fields other than requests.
type connectionStats struct {
	stored, repeats, malformed, unowned int
	// lost is how many numbers the hub reported as lost.
	lost uint64
	// requests is how many requests this process has sent to the hub.
	requests atomic.Uint64
}

// CountRequest counts a request to a hub of the shard.
func (sh *Shard) CountRequest(hub domain.HubID) {
	sh.mu.Lock()
	s := sh.hubs[hub]
	sh.mu.Unlock()
	if s != nil {
		s.stats.requests.Add(1)
	}
}

// logConnection logs the end t of the connection recorded in p, and resets the stats.
func (s *hubState) logConnection(
	ctx context.Context, p domain.Presence, t presence.Transition, now time.Time,
) {
	reason := ""
	if t.Reason != nil {
		reason = *t.Reason
	}
	s.shard.cfg.Logger.LogAttrs(
		ctx, slog.LevelInfo, "hub session", slog.String("hub_id", string(s.hub)),
		slog.Float64("duration_ms", float64(now.Sub(p.Since).Microseconds())/1000),
		slog.String("reason", reason), slog.String("remote", p.PublicIP),
		slog.Int("events_stored", s.stats.stored), slog.Int("events_repeated", s.stats.repeats),
		slog.Uint64("events_lost", s.stats.lost), slog.Int("events_malformed", s.stats.malformed),
		slog.Int("events_unowned", s.stats.unowned),
		slog.Uint64("requests", s.stats.requests.Load()),
	)
	s.stats.stored, s.stats.repeats, s.stats.lost = 0, 0, 0
	s.stats.malformed, s.stats.unowned = 0, 0
	s.stats.requests.Store(0)
}
