package readmodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// Ready returns nil if the read models are complete and every awaited projection may go
// on. Otherwise it
// returns schema.ErrBuilding with the progress of the build; directory.ErrReadModelsStopped,
// with a *schema.StoppedError if an event stops a projection; why the database cannot be used,
// as Open does; or the database's error.
func (s *Store) Ready(ctx context.Context) error {
	if rejected := s.rejected.Load(); rejected != nil {
		return *rejected
	}
	if !isClosed(s.claimed) {
		return errGone
	}
	began := time.Now()
	err := s.ready(ctx)
	if err == nil || errors.Is(err, schema.ErrBuilding) {
		s.answered()
	} else if mayPass(err) {
		s.failed(began, err)
	}
	return err
}

func (s *Store) ready(ctx context.Context) error {
	switch state, err := s.queries.SchemaState(ctx, s.schema); {
	case errors.Is(err, pgx.ErrNoRows):
		return schema.ErrBuilding
	case err != nil:
		return fmt.Errorf("read models: %w", err)
	case state != schema.StateLive:
		return s.buildProgress(ctx)
	}
	return s.checkRunning(ctx)
}

// buildProgress returns schema.ErrBuilding with the progress of the first build.
func (s *Store) buildProgress(ctx context.Context) error {
	if err := s.checkRunning(ctx); err != nil {
		return fmt.Errorf("%w: %w", schema.ErrBuilding, err)
	}
	row, err := s.queries.Build(ctx, s.schema)
	if err == nil && schema.BuildUnderWay(row) {
		return fmt.Errorf("%w: %d of %d events", schema.ErrBuilding, row.Sequence, row.Head)
	}
	at, err := s.queries.Checkpoint(ctx, schema.Directory)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	return fmt.Errorf(
		"%w: %d of %d events", schema.ErrBuilding, at.Sequence,
		max(at.Sequence, int64(s.buildTarget.Load())),
	)
}

// checkRunning returns an error that wraps directory.ErrReadModelsStopped if a projection is
// stopped, and nil if none is.
func (s *Store) checkRunning(ctx context.Context) error {
	rows, err := s.queries.Checkpoints(ctx)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	stops, err := s.queries.Stops(ctx)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	for _, row := range rows {
		if !schema.Awaited(row.Projection) {
			continue
		}
		if err := schema.CheckRunning(row, stops); err != nil {
			return err
		}
	}
	return nil
}

// OtherVersionServes reports whether a program of another version serves from read models of its
// own, which are complete.
func (s *Store) OtherVersionServes(ctx context.Context) (bool, error) {
	schemas, err := s.queries.Schemas(ctx)
	if err != nil {
		return false, fmt.Errorf("read models: %w", err)
	}
	for _, other := range schemas {
		if other.Name == s.schema || other.State != schema.StateLive {
			continue
		}
		held, err := schema.ServingLock(other.Name).IsHeld(ctx, s.pool)
		if err != nil || held {
			return held, err
		}
	}
	return false, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
