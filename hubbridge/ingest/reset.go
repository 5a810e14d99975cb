package ingest

import (
	"context"
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/hubbridge/codec"
	"hubcloud/streams"
	"hubcloud/streams/journal"
)

// switchLog records ownLog as the hub's own log, with numbers that continue after through, and
// writes the checkpoint at once: the identity of a hub's log must not be forgotten. If the hub had
// another log, it was reset; then the event log of a hub with an organization starts a new epoch,
// with hub.log_reset as its first event.
func (s *hubState) switchLog(ctx context.Context, ownLog string, through uint64) error {
	if s.log.ownLog != "" && s.log.owned() {
		if err := s.startEpoch(ctx, ownLog, through); err != nil {
			return err
		}
	}
	s.log.retired = retire(s.log.retired, s.log.ownLog, ownLog)
	s.log.ownLog, s.log.through, s.log.unaccounted = ownLog, through, 0
	s.dirty = true
	if err := s.recordLogReset(ctx); err != nil {
		return err
	}
	return s.flush(ctx)
}

// recordLogReset stores the hub.log_reset with which the epoch begins, unless it is stored. A
// process that was killed after the directory had the epoch leaves that to the next one that loads
// the hub's state. The checkpoint follows at once: it shows that the event was stored also once the
// event has expired.
func (s *hubState) recordLogReset(ctx context.Context) error {
	reason := s.log.logReset
	if reason == "" {
		return nil
	}
	data := codec.AppendLogResetData(nil, reason)
	record := s.cloudRecord(domain.EventHubLogReset, s.now(), data, s.presence)
	if err := s.append(ctx, []journal.Record{record}); err != nil {
		return err
	}
	s.log.logReset, s.dirty = "", true
	return s.flush(ctx)
}

// startEpoch starts a new epoch of the hub's event log. The directory records the epoch first; from
// then on every older cursor has expired. startEpoch returns when this replica's view shows the
// epoch.
func (s *hubState) startEpoch(ctx context.Context, ownLog string, through uint64) error {
	cfg := &s.shard.cfg
	if s.now().Before(s.noResetBefore) {
		return errResetLimited
	}
	// A stale view would report the same reset twice.
	state, _, err := cfg.Directory.Hub(ctx, s.hub)
	if err != nil {
		return err
	}
	if state.Epoch.ID != s.log.epoch {
		s.loaded = false
		return fmt.Errorf("%w: hub %s", errViewBehind, s.hub)
	}
	after, err := cfg.Logs.LastSequence(ctx, s.hub)
	if err != nil {
		return err
	}
	origin := domain.Origin{
		At:    s.now(),
		Actor: domain.Actor{Kind: domain.ActorHub, ID: string(s.hub)},
	}
	begun := domain.BeginEpoch{
		OwnLog:  ownLog,
		Through: through,
		After:   max(after, state.Epoch.After),
	}
	if err := s.requireLease(); err != nil {
		return err
	}
	if err := cfg.Directory.BeginEpoch(ctx, origin, s.hub, begun); err != nil {
		var limited *domain.Error
		if errors.As(err, &limited) && limited.Code == domain.CodeRateLimited {
			s.noResetBefore = s.now().Add(limited.RetryAfter)
			return errResetLimited
		}
		s.loaded = false
		return err
	}
	if state, _, err = cfg.Directory.Hub(ctx, s.hub); err != nil {
		s.loaded = false
		return err
	}
	if state.OwnLog != ownLog {
		s.loaded = false
		return fmt.Errorf(
			"hub %s: own log in the directory: got %q, want %q", s.hub, state.OwnLog, ownLog,
		)
	}
	if err := s.awaitView(ctx, state.Epoch.ID); err != nil {
		s.loaded = false
		return err
	}
	cfg.Metrics.resets.Inc()
	cfg.Logger.Info(
		"hub was reset; new epoch of its event log", "hub_id", s.hub, "former_log", s.log.ownLog,
		"log", ownLog, "from", through+1,
	)
	s.log.epoch, s.log.accountedSeq = state.Epoch.ID, state.Epoch.After
	s.log.logReset = domain.LogResetFactory
	return nil
}

// awaitView waits until this replica's view of the directory shows an epoch: the readers of the
// hub's log must know the epoch before its first event is stored.
func (s *hubState) awaitView(ctx context.Context, epoch domain.EpochID) error {
	ctx, cancel := context.WithTimeout(ctx, viewWait)
	defer cancel()
	for {
		if access, ok := s.shard.cfg.Ownership.Hub(s.hub); ok && access.Epoch.ID == epoch {
			return nil
		}
		if !streams.Sleep(ctx, viewPause) {
			return fmt.Errorf("%w: hub %s", errViewBehind, s.hub)
		}
	}
}
