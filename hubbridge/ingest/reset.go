package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
)

// turnTo makes log the hub's log, settled up to through, and puts that into the ledger at once: the
// identity of a hub's log must not be forgotten. For the first log that is heard of there is no
// more to do. Another one means that the hub was reset: the event log of a hub that somebody has
// begins anew.
func (s *session) turnTo(ctx context.Context, log string, through uint64) error {
	if s.log.name != "" && s.log.owned() {
		if err := s.beginLog(ctx, log, through); err != nil {
			return err
		}
	}
	s.log.retired = retire(s.log.retired, s.log.name, log)
	s.log.name, s.log.through, s.log.slack = log, through, 0
	s.dirty = true
	return s.flush(ctx)
}

// beginLog begins the hub's event log anew: the directory says so first, and from then on every
// cursor of before is expired. It returns when this replica's own view has it.
func (s *session) beginLog(ctx context.Context, log string, through uint64) error {
	cfg := &s.shard.cfg
	if s.now().Before(s.noResetBefore) {
		return errTooOften
	}
	// A view that is behind would have a reset that was dealt with already be one again.
	state, _, err := cfg.Directory.Hub(ctx, s.hub)
	if err != nil {
		return err
	}
	if state.Epoch.ID != s.log.epoch {
		s.loaded = false
		return fmt.Errorf("%w: hub %s", errBehind, s.hub)
	}
	after, err := cfg.Logs.LastSequence(ctx, s.hub)
	if err != nil {
		return err
	}
	origin := domain.Origin{
		At:    s.now(),
		Actor: domain.Actor{Kind: domain.ActorHub, ID: string(s.hub)},
	}
	begun := domain.BeginLog{OwnLog: log, Through: through, After: max(after, state.Epoch.After)}
	if err := s.mustHold(); err != nil {
		return err
	}
	if err := cfg.Directory.BeginLog(ctx, origin, s.hub, begun); err != nil {
		var limited *domain.Error
		if errors.As(err, &limited) && limited.Code == domain.CodeRateLimited {
			s.noResetBefore = s.now().Add(limited.RetryAfter)
			return errTooOften
		}
		s.loaded = false
		return err
	}
	if state, _, err = cfg.Directory.Hub(ctx, s.hub); err != nil || state.OwnLog != log {
		s.loaded = false
		return fmt.Errorf("hub %s: its log was begun and is not seen: %w", s.hub, err)
	}
	if err := s.awaitView(ctx, state.Epoch.ID); err != nil {
		s.loaded = false
		return err
	}
	cfg.Metrics.resets.Inc()
	cfg.Log.Info(
		"hub was reset; its event log begins anew", "hub_id", s.hub, "former_log", s.log.name,
		"log", log, "from", through+1,
	)
	s.log.epoch, s.log.seq = state.Epoch.ID, state.Epoch.After
	return nil
}

// awaitView waits until this replica's view of the directory has an epoch: its readers of the
// hub's log must know it before the first event is stored.
func (s *session) awaitView(ctx context.Context, epoch domain.EpochID) error {
	ctx, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	for {
		if access, ok := s.shard.cfg.Ownership.Hub(s.hub); ok && access.Epoch.ID == epoch {
			return nil
		}
		select {
		case <-time.After(viewPause):
		case <-ctx.Done():
			return fmt.Errorf("%w: hub %s", errBehind, s.hub)
		}
	}
}
