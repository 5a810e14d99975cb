package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/projections/internal/query"
)

// The states of a projection.
const (
	// StateBuilding says that the read models have not been complete yet.
	StateBuilding = "building"
	// StateRunning says that they follow their stream.
	StateRunning = "running"
	// StateStopped says that an event stops them.
	StateStopped = "stopped"
	// StateStoppedByOperator says that an operator has stopped them.
	StateStoppedByOperator = "stopped_by_operator"
	// StateUnattended says that no process projects: none runs with that role, or none reaches the
	// database.
	StateUnattended = "unattended"
)

// schemaLive is the state of a schema whose read models have been complete once.
const schemaLive = "live"

// ProjectionStatus is how one projection does, whichever process runs it.
type ProjectionStatus struct {
	// Name is DirectoryProjection or PresenceProjection.
	Name string
	// Sequence is the last event that the read models have, Head the stream's last, Lag how many
	// sequence numbers lie between.
	Sequence, Head, Lag uint64
	// Behind is how long ago the first event was stored that the read models do not have; 0 when
	// they have all.
	Behind time.Duration
	// State is one of the State… constants.
	State string
	// Reason is why it is not StateRunning; empty when it is.
	Reason string
	// Stopped is the event that stops it; nil when none does.
	Stopped *StoppedError
}

// Status gives every projection's state, by name.
func (s *Store) Status(
	ctx context.Context, dir Directory, presence jetstream.KeyValue,
) ([]ProjectionStatus, error) {
	return statuses(ctx, s.pool, s.schema, dir, presence)
}

// statuses gives every projection's state. The database's search path names the schema.
func statuses(
	ctx context.Context, db query.DBTX, schema string, dir Directory, presence jetstream.KeyValue,
) ([]ProjectionStatus, error) {
	queries := query.New(db)
	rows, err := queries.Checkpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	stops, err := queries.Stops(ctx)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	attended, err := isLocked(ctx, db, lockSpace, lockOf(schema))
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	bucket := &presenceSource{bucket: presence}
	streams := map[string]struct {
		head   func(context.Context, uint64) (uint64, error)
		stored func(context.Context, uint64) (time.Time, bool, error)
	}{
		DirectoryProjection: {
			dir.Head,
			func(ctx context.Context, seq uint64) (time.Time, bool, error) {
				event, ok, err := dir.At(ctx, seq)
				return event.StoredAt, ok, err
			},
		},
		PresenceProjection: {bucket.head, bucket.storedAt},
	}
	all := make([]ProjectionStatus, 0, len(rows))
	for _, row := range rows {
		stream := streams[row.Projection]
		status := ProjectionStatus{
			Name:     row.Projection,
			Sequence: uint64(row.Sequence),
			Stopped:  stoppedOf(row),
		}
		// Read models that are further than a stale answer would look like those of another stream.
		if status.Head, err = stream.head(ctx, status.Sequence); err != nil {
			return nil, fmt.Errorf("read models: status of %s: %w", row.Projection, err)
		}
		status.Lag = max(status.Head, status.Sequence) - status.Sequence
		if status.Lag > 0 {
			at, ok, err := stream.stored(ctx, status.Sequence+1)
			if err != nil {
				return nil, fmt.Errorf("read models: status of %s: %w", row.Projection, err)
			}
			if ok {
				status.Behind = max(0, time.Since(at))
			}
		}
		status.State, status.Reason = stateOf(row, stops, status.Stopped, attended)
		all = append(all, status)
	}
	return all, nil
}

func stateOf(
	row query.Checkpoint, stops []query.HubcloudStop, stopped *StoppedError, attended bool,
) (state, reason string) {
	if stop, ok := stopOf(stops, row.Projection); ok {
		return StateStoppedByOperator, (&operatorStop{stop}).Error()
	}
	switch {
	case stopped != nil:
		return StateStopped, stopped.Error()
	case !attended:
		return StateUnattended, "no process projects: start one with the role projector"
	case !row.Built:
		return StateBuilding, ErrBuilding.Error()
	default:
		return StateRunning, ""
	}
}

// Ready returns nil when the read models are complete and nothing stops them. Otherwise it is
// directory.ErrStandingStill, with a *StoppedError when an event stops them; ErrBuilding, with how
// far they are; or what the database says.
func (s *Store) Ready(ctx context.Context) error {
	switch state, err := s.control.SchemaState(ctx, s.schema); {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrBuilding
	case err != nil:
		return fmt.Errorf("read models: %w", err)
	case state != schemaLive:
		return s.building(ctx)
	}
	return s.standing(ctx)
}

// building says how far the read models are that have not been complete yet.
func (s *Store) building(ctx context.Context) error {
	if err := s.standing(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrBuilding, err)
	}
	row, err := s.control.Build(ctx, s.schema)
	if err == nil && row.Phase != PhaseDone && row.Phase != PhaseFailed {
		return fmt.Errorf("%w: %d of %d events", ErrBuilding, row.Sequence, row.Head)
	}
	at, err := s.control.Checkpoint(ctx, DirectoryProjection)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	return fmt.Errorf(
		"%w: %d of %d events", ErrBuilding, at.Sequence, max(at.Sequence, int64(s.target.Load())),
	)
}

// standing returns nil unless a projection stands still, and then ErrStandingStill.
func (s *Store) standing(ctx context.Context) error {
	rows, err := s.control.Checkpoints(ctx)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	stops, err := s.control.Stops(ctx)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	for _, row := range rows {
		if err := whyStill(row, stops); err != nil {
			return err
		}
	}
	return nil
}

// whyStill gives directory.ErrStandingStill when a projection stands still, and nil otherwise.
func whyStill(row query.Checkpoint, stops []query.HubcloudStop) error {
	if stop, ok := stopOf(stops, row.Projection); ok {
		return &standsStill{&operatorStop{stop}}
	}
	if stopped := stoppedOf(row); stopped != nil {
		return &standsStill{stopped}
	}
	return nil
}

// Schema names the schema that the read models are in.
func (s *Store) Schema() string { return s.schema }

func stoppedOf(row query.Checkpoint) *StoppedError {
	if row.StoppedSequence == nil || row.StoppedError == nil {
		return nil
	}
	stopped := &StoppedError{
		Projection: row.Projection,
		Sequence:   uint64(*row.StoppedSequence),
		Err:        errors.New(*row.StoppedError),
	}
	if row.StoppedType != nil {
		stopped.Type = *row.StoppedType
	}
	return stopped
}

func stopOf(stops []query.HubcloudStop, projection string) (query.HubcloudStop, bool) {
	for _, stop := range stops {
		if stop.Projection == projection {
			return stop, true
		}
	}
	return query.HubcloudStop{}, false
}
