// Package status reads the state of the projections: their checkpoints, the events that stop them,
// and the stops of operators.
package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// Stream is the stream of a projection.
type Stream interface {
	// Head returns the sequence of the stream's last event. seen is a sequence that the caller has
	// read, or 0. If the stream seems to end before seen, Head asks the stream's leader.
	Head(ctx context.Context, seen uint64) (uint64, error)
	// StoredAt returns when the first event at a sequence or after it was stored; false if there is
	// no such event.
	StoredAt(ctx context.Context, seq uint64) (time.Time, bool, error)
}

// Read returns the status of every projection, ordered by name. streams has the stream of each
// projection, by name. db must find the tables of schemaName.
func Read(
	ctx context.Context, db query.DBTX, schemaName string, streams map[string]Stream,
) ([]projections.Status, error) {
	queries := query.New(db)
	rows, err := queries.Checkpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	stops, err := queries.Stops(ctx)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	attended, err := database.ProjectorLock(schemaName).IsHeld(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	all := make([]projections.Status, 0, len(rows))
	for _, row := range rows {
		status := projections.Status{
			Name:     row.Projection,
			Sequence: uint64(row.Sequence),
			Stopped:  recordedStop(row),
		}
		if err := measureLag(ctx, &status, streams[row.Projection]); err != nil {
			return nil, fmt.Errorf("read models: status of %s: %w", row.Projection, err)
		}
		status.State, status.Reason = StateOf(row.Projection, stops, attended, row.Built)
		if stopped := status.Stopped; stopped != nil &&
			status.State != projections.StateStoppedByOperator {
			status.State, status.Reason = projections.StateStopped, stopped.Error()
		}
		all = append(all, status)
	}
	return all, nil
}

// measureLag sets Head, Lag and Behind.
func measureLag(ctx context.Context, status *projections.Status, stream Stream) (err error) {
	// A stale head before the checkpoint would look like the head of another stream.
	if status.Head, err = stream.Head(ctx, status.Sequence); err != nil {
		return err
	}
	status.Lag = max(status.Head, status.Sequence) - status.Sequence
	if status.Lag == 0 {
		return nil
	}
	at, ok, err := stream.StoredAt(ctx, status.Sequence+1)
	if ok {
		status.Behind = max(0, time.Since(at))
	}
	return err
}

// StateOf returns the state of a projection that no event stops, and the reason for a state other
// than running. attended reports whether a process projects, built whether the tables have ever been
// complete.
func StateOf(
	projection string, stops []query.HubcloudStop, attended, built bool,
) (state, reason string) {
	if stop, ok := StopOf(stops, projection); ok {
		return projections.StateStoppedByOperator, (&operatorStop{stop}).Error()
	}
	switch {
	case !attended:
		return projections.StateUnattended, "no process projects: start one with the role projector"
	case !built:
		return projections.StateBuilding, projections.ErrBuilding.Error()
	default:
		return projections.StateRunning, ""
	}
}

// StopOf returns an operator's stop of a projection.
func StopOf(stops []query.HubcloudStop, projection string) (query.HubcloudStop, bool) {
	for _, stop := range stops {
		if stop.Projection == projection {
			return stop, true
		}
	}
	return query.HubcloudStop{}, false
}

// IsComplete reports whether the first build of a schema's read models is complete. It is false for
// a schema that is not recorded.
func IsComplete(ctx context.Context, queries *query.Queries, schemaName string) (bool, error) {
	state, err := queries.SchemaState(ctx, schemaName)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return state == schema.StateLive, err
}

// The phases in which a build ends, as the schema `hubcloud` records them.
const (
	PhaseDone   = "done"
	PhaseFailed = "failed"
)

// BuildUnderWay reports whether a recorded build has not ended.
func BuildUnderWay(row query.BuildRow) bool {
	return row.Phase != PhaseDone && row.Phase != PhaseFailed
}

// CheckRunning returns nil while a projection may go on. Otherwise it returns an error that wraps
// directory.ErrReadModelsStopped, and a *projections.StoppedError when an event stops the
// projection.
func CheckRunning(row query.Checkpoint, stops []query.HubcloudStop) error {
	if stop, ok := StopOf(stops, row.Projection); ok {
		return &readModelsStopped{&operatorStop{stop}}
	}
	if stopped := recordedStop(row); stopped != nil {
		return &readModelsStopped{stopped}
	}
	return nil
}

// recordedStop returns the recorded event that stops a projection; nil when none does.
func recordedStop(row query.Checkpoint) *projections.StoppedError {
	if row.StoppedSequence == nil || row.StoppedError == nil {
		return nil
	}
	stopped := &projections.StoppedError{
		Projection: row.Projection,
		Sequence:   uint64(*row.StoppedSequence),
		Err:        errors.New(*row.StoppedError),
	}
	if row.StoppedType != nil {
		stopped.Type = *row.StoppedType
	}
	return stopped
}

// operatorStop is an operator's stop of a projection, as an error.
type operatorStop struct{ query.HubcloudStop }

func (e *operatorStop) Error() string {
	text := fmt.Sprintf(
		"projection %s was stopped by an operator at %s", e.Projection,
		e.StoppedAt.UTC().Format(time.RFC3339),
	)
	if e.Why != "" {
		text += ": " + e.Why
	}
	return text
}

// readModelsStopped is directory.ErrReadModelsStopped and the reason, with the text of the reason.
type readModelsStopped struct{ reason error }

func (e *readModelsStopped) Error() string { return e.reason.Error() }

func (e *readModelsStopped) Unwrap() []error {
	return []error{directory.ErrReadModelsStopped, e.reason}
}
