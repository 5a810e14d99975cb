package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hubcloud/domain"
	"hubcloud/projections"
	"hubcloud/projections/database"
)

// ErrNotSkippable means that the projection is stopped, but not by a single event.
var ErrNotSkippable = errors.New("no single event stops the projection")

// NotStoppedError means that no projection is stopped at the event that is to be skipped.
type NotStoppedError struct {
	Sequence uint64
	// Projections is the status of all projections.
	Projections []projections.Status
}

// Error names the sequence and where the projections are.
func (e *NotStoppedError) Error() string {
	states := make([]string, len(e.Projections))
	for i, p := range e.Projections {
		if p.Stopped != nil {
			states[i] = fmt.Sprintf(" %s is stopped at %d", p.Name, p.Stopped.Sequence)
		} else {
			states[i] = fmt.Sprintf(
				" %s is not stopped by an event and has reached %d", p.Name, p.Sequence,
			)
		}
	}
	return fmt.Sprintf(
		"no projection is stopped at sequence %d, and only the event that stops one can be "+
			"skipped:", e.Sequence,
	) + strings.Join(states, ";")
}

// SkipLog records skipped events; *directory.Log implements it.
type SkipLog interface {
	Skip(ctx context.Context, o domain.Origin, skip domain.ProjectionSkipped) error
}

// Skip makes the projection that an event stops skip the event. The skip is recorded in the
// directory's log, so that every later build skips the event too. Skip returns the projection's
// status once it goes on, at most 15 s later. name names the projection. If it is empty, Skip
// chooses the one that is stopped at seq; if both are, the directory's.
//
// Skip fails with a *NotStoppedError if no projection is stopped at the sequence, and with
// ErrNotSkippable if the read models are of another stream.
func (c *Control) Skip(
	ctx context.Context, log SkipLog, o domain.Origin, name string, seq uint64, why string,
) (skipped domain.ProjectionSkipped, now projections.Status, err error) {
	all, err := c.Status(ctx)
	if err != nil {
		return skipped, now, err
	}
	p, ok := stoppedAt(all, name, seq)
	if !ok {
		return skipped, now, &NotStoppedError{Sequence: seq, Projections: all}
	}
	if p.Stopped.Sequence <= p.Sequence {
		return skipped, p, fmt.Errorf("%w: %s", ErrNotSkippable, p.Stopped)
	}
	skipped = domain.ProjectionSkipped{
		Projection: p.Name, Sequence: seq, Type: database.StorableText(p.Stopped.Type),
		Error: database.StorableText(p.Stopped.Err.Error()), Why: why,
	}
	if err := log.Skip(ctx, o, skipped); err != nil {
		return skipped, p, err
	}
	now, err = c.await(ctx, p.Name, func(p projections.Status) bool {
		return p.Sequence >= seq || p.State == projections.StateStoppedByOperator ||
			p.State == projections.StateUnattended
	})
	return skipped, now, err
}

// stoppedAt returns the first projection that is stopped at a sequence, of the given name unless
// that is empty.
func stoppedAt(all []projections.Status, name string, seq uint64) (projections.Status, bool) {
	for _, p := range all {
		if p.Stopped != nil && p.Stopped.Sequence == seq && (name == "" || p.Name == name) {
			return p, true
		}
	}
	return projections.Status{}, false
}
