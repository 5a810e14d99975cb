package readmodel

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections"
	"hubcloud/projections/schema"
	"hubcloud/projections/status"
)

// Status returns the status of every projection, ordered by name. streams has the stream of each,
// by name.
func (s *Store) Status(
	ctx context.Context, streams map[string]status.Stream,
) ([]projections.Status, error) {
	return status.Read(ctx, s.pool, s.schema, streams)
}

// Ready returns nil if the read models are complete and every projection may go on. Otherwise it
// returns projections.ErrBuilding with the progress of the build; directory.ErrReadModelsStopped,
// with a *projections.StoppedError if an event stops a projection; or the database's error.
func (s *Store) Ready(ctx context.Context) error {
	switch state, err := s.unchecked.SchemaState(ctx, s.schema); {
	case errors.Is(err, pgx.ErrNoRows):
		return projections.ErrBuilding
	case err != nil:
		return fmt.Errorf("read models: %w", err)
	case state != schema.StateLive:
		return s.buildProgress(ctx)
	}
	return s.checkRunning(ctx)
}

// buildProgress returns projections.ErrBuilding with the progress of the first build.
func (s *Store) buildProgress(ctx context.Context) error {
	if err := s.checkRunning(ctx); err != nil {
		return fmt.Errorf("%w: %w", projections.ErrBuilding, err)
	}
	row, err := s.unchecked.Build(ctx, s.schema)
	if err == nil && status.BuildUnderWay(row) {
		return fmt.Errorf("%w: %d of %d events", projections.ErrBuilding, row.Sequence, row.Head)
	}
	at, err := s.unchecked.Checkpoint(ctx, projections.Directory)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	return fmt.Errorf(
		"%w: %d of %d events", projections.ErrBuilding, at.Sequence,
		max(at.Sequence, int64(s.buildTarget.Load())),
	)
}

// checkRunning returns an error that wraps directory.ErrReadModelsStopped if a projection is
// stopped, and nil if none is.
func (s *Store) checkRunning(ctx context.Context) error {
	rows, err := s.unchecked.Checkpoints(ctx)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	stops, err := s.unchecked.Stops(ctx)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	for _, row := range rows {
		if err := status.CheckRunning(row, stops); err != nil {
			return err
		}
	}
	return nil
}
