package ingest

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
)

// tally counts what came of a hub since it connected, or since this replica took it up, for the
// line at the session's end. It belongs to the worker that has the session, but for requests.
type tally struct {
	stored, repeats, malformed, unowned int
	// lost is how many numbers the hub said it had lost.
	lost uint64
	// requests is how often this process has asked the hub for something.
	requests atomic.Uint64
}

// Asked counts a request to a hub of the shard.
func (sh *Shard) Asked(hub domain.HubID) {
	sh.mu.Lock()
	s := sh.sessions[hub]
	sh.mu.Unlock()
	if s != nil {
		s.tally.requests.Add(1)
	}
}

// reportSession writes the line of a connection that has ended, as was told of it before.
func (s *session) reportSession(
	ctx context.Context, told domain.Presence, t presence.Transition, now time.Time,
) {
	reason := ""
	if t.Reason != nil {
		reason = *t.Reason
	}
	s.shard.cfg.Log.LogAttrs(
		ctx,
		slog.LevelInfo,
		"hub session",
		slog.String("hub_id", string(s.hub)),
		slog.Float64("duration_ms", float64(now.Sub(told.Since).Microseconds())/1000),
		slog.String("reason", reason),
		slog.String("remote", told.PublicIP),
		slog.Int("events_stored", s.tally.stored),
		slog.Int("events_repeated", s.tally.repeats),
		slog.Uint64("events_lost", s.tally.lost),
		slog.Int("events_malformed", s.tally.malformed),
		slog.Int("events_unowned", s.tally.unowned),
		slog.Uint64("requests", s.tally.requests.Load()),
	)
	s.tally.stored, s.tally.repeats, s.tally.lost, s.tally.malformed, s.tally.unowned = 0, 0, 0, 0, 0
	s.tally.requests.Store(0)
}
