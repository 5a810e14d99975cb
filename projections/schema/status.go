package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/streams/directory"
)

// Stream is the stream of a checkpoint.
type Stream interface {
	// Name returns the name of the checkpoint.
	Name() string
	// Head returns the sequence of the stream's last event. seen is a sequence that the caller has
	// read, or 0. If the stream seems to end before seen, Head asks the stream's leader.
	Head(ctx context.Context, seen uint64) (uint64, error)
	// StoredAt returns when the first event at a sequence or after it was stored; false if there is
	// no such event.
	StoredAt(ctx context.Context, seq uint64) (time.Time, bool, error)
}

// ReadStatus returns the status of the projections of streams, in the order of Names. db must find
// the tables of schemaName.
func ReadStatus[S Stream](
	ctx context.Context, db DBTX, schemaName string, streams []S,
) ([]Status, error) {
	queries := New(db)
	rows, err := queries.Checkpoints(ctx)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	stops, err := queries.Stops(ctx)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	attended, err := ProjectorLock(schemaName).IsHeld(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read models: status: %w", err)
	}
	checkpoints := map[string]Checkpoint{}
	for _, row := range rows {
		checkpoints[row.Projection] = row
	}
	var all []Status
	built := map[string]bool{}
	for _, stream := range streams {
		row, name := checkpoints[stream.Name()], ProjectionOf(stream.Name())
		if len(all) == 0 || all[len(all)-1].Name != name {
			all, built[name] = append(all, Status{Name: name}), true
		}
		s := &all[len(all)-1]
		if err := s.measureLag(ctx, uint64(row.Sequence), stream); err != nil {
			return nil, fmt.Errorf("read models: status of %s: %w", stream.Name(), err)
		}
		s.Stopped, built[name] = recordedStop(row), built[name] && row.Built
	}
	for i := range all {
		all[i].setState(stops, attended, built[all[i].Name])
	}
	return all, nil
}

// measureLag adds a stream to Sequence, Head, Lag and Behind.
func (s *Status) measureLag(ctx context.Context, at uint64, stream Stream) error {
	// A stale head before the checkpoint would look like the head of another stream.
	head, err := stream.Head(ctx, at)
	if err != nil {
		return err
	}
	s.Sequence, s.Head = s.Sequence+at, s.Head+head
	if head <= at {
		return nil
	}
	s.Lag += head - at
	stored, ok, err := stream.StoredAt(ctx, at+1)
	if ok {
		s.Behind = max(s.Behind, time.Since(stored))
	}
	return err
}

// setState sets State and Reason. attended reports whether a process projects, built whether the
// tables have ever been complete.
func (s *Status) setState(stops []HubcloudStop, attended, built bool) {
	stop, byOperator := StopOf(stops, s.Name)
	switch {
	case byOperator:
		s.State, s.Reason = StateStoppedByOperator, (&operatorStop{stop}).Error()
	case s.Stopped != nil:
		s.State, s.Reason = StateStopped, s.Stopped.Error()
	case !attended:
		s.State, s.Reason = StateUnattended, "no process projects: start one with the role projector"
	case !built:
		s.State, s.Reason = StateBuilding, ErrBuilding.Error()
	default:
		s.State = StateRunning
	}
}

// StopOf returns an operator's stop of a projection.
func StopOf(stops []HubcloudStop, projection string) (HubcloudStop, bool) {
	for _, stop := range stops {
		if stop.Projection == projection {
			return stop, true
		}
	}
	return HubcloudStop{}, false
}

// IsComplete reports whether the first build of a schema's read models is complete. It is false for
// a schema that is not recorded.
func IsComplete(ctx context.Context, queries *Queries, schemaName string) (bool, error) {
	state, err := queries.SchemaState(ctx, schemaName)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return state == StateLive, err
}

// The phases in which a build ends, as the schema `hubcloud` records them.
const (
	PhaseDone   = "done"
	PhaseFailed = "failed"
)

// BuildUnderWay reports whether a recorded build has not ended.
func BuildUnderWay(row BuildRow) bool {
	return row.Phase != PhaseDone && row.Phase != PhaseFailed
}

// CheckRunning returns nil while the projection of a checkpoint may go on. Otherwise it returns an
// error that wraps directory.ErrReadModelsStopped, and a *StoppedError when an event stops the
// projection.
func CheckRunning(row Checkpoint, stops []HubcloudStop) error {
	if stop, ok := StopOf(stops, row.Projection); ok {
		return &readModelsStopped{&operatorStop{stop}}
	}
	if stopped := recordedStop(row); stopped != nil {
		return &readModelsStopped{stopped}
	}
	return nil
}

// recordedStop returns the recorded event that stops a projection; nil when none does.
func recordedStop(row Checkpoint) *StoppedError {
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

// operatorStop is an operator's stop of a projection, as an error.
type operatorStop struct{ HubcloudStop }

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
