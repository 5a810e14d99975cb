package projections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/projections/internal/query"
)

// The states of a projection.
const (
	// StateBuilding says that the read models have not been complete yet.
	StateBuilding = "building"
	// StateLive says that they follow their stream.
	StateLive = "live"
	// StateStopped says that an event stops them.
	StateStopped = "stopped"
)

// ProjectionStatus is how one projection does, whichever process runs it.
type ProjectionStatus struct {
	// Name is DirectoryProjection or PresenceProjection.
	Name string
	// Sequence is the last event that the read models have, Head the stream's last, Lag how many sequence numbers lie between.
	Sequence, Head, Lag uint64
	// State is StateBuilding, StateLive or StateStopped.
	State string
	// Stopped is the event that stops it; nil unless State is StateStopped.
	Stopped *StoppedError
}

// Status gives every projection's state, by name.
func (s *Store) Status(ctx context.Context, dir Directory, presence jetstream.KeyValue) ([]ProjectionStatus, error) {
	rows, err := s.queries.Checkpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	heads := map[string]func(context.Context) (uint64, error){
		DirectoryProjection: dir.Head,
		PresenceProjection:  (&presenceSource{bucket: presence}).head,
	}
	all := make([]ProjectionStatus, 0, len(rows))
	for _, row := range rows {
		status := ProjectionStatus{Name: row.Projection, Sequence: uint64(row.Sequence), State: StateLive, Stopped: stoppedOf(row)}
		if status.Head, err = heads[row.Projection](ctx); err != nil {
			return nil, fmt.Errorf("read models: status of %s: %w", row.Projection, err)
		}
		status.Lag = max(status.Head, status.Sequence) - status.Sequence
		switch {
		case status.Stopped != nil:
			status.State = StateStopped
		case !row.Built:
			status.State = StateBuilding
		}
		all = append(all, status)
	}
	return all, nil
}

// Ready returns nil when the read models are complete and nothing stops them. Otherwise it is a *StoppedError, ErrBuilding, or
// what the database says.
func (s *Store) Ready(ctx context.Context) error {
	rows, err := s.queries.Checkpoints(ctx)
	if err != nil {
		return fmt.Errorf("read models: %w", err)
	}
	for _, row := range rows {
		if stopped := stoppedOf(row); stopped != nil {
			return stopped
		}
	}
	switch state, err := s.queries.SchemaState(ctx, s.schema); {
	case errors.Is(err, pgx.ErrNoRows) || err == nil && state != StateLive:
		return ErrBuilding
	case err != nil:
		return fmt.Errorf("read models: %w", err)
	}
	return nil
}

// Schema names the schema that the read models are in.
func (s *Store) Schema() string { return s.schema }

func stoppedOf(row query.Checkpoint) *StoppedError {
	if row.StoppedSequence == nil || row.StoppedError == nil {
		return nil
	}
	stopped := &StoppedError{Projection: row.Projection, Sequence: uint64(*row.StoppedSequence), Err: errors.New(*row.StoppedError)}
	if row.StoppedType != nil {
		stopped.Type = *row.StoppedType
	}
	return stopped
}
