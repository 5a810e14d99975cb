package rebuild

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// errNotSkippable means that the projection is stopped, but not by a single event.
var errNotSkippable = errors.New("no single event stops the projection")

// NotStoppedError means that the event to skip stops no projection, or not the given one.
type NotStoppedError struct {
	// Projection is the projection that was to skip the event; empty for any.
	Projection string
	Sequence   uint64
	// Projections is the status of all projections.
	Projections []schema.Status
}

// Error names the event, and the event that stops each projection.
func (e *NotStoppedError) Error() string {
	states := make([]string, len(e.Projections))
	for i, p := range e.Projections {
		if p.Stopped != nil {
			states[i] = fmt.Sprintf("%s is stopped at %d", p.Name, p.Stopped.Sequence)
		} else {
			states[i] = fmt.Sprintf(
				"%s is not stopped by an event and has reached %d", p.Name, p.Sequence,
			)
		}
	}
	what := "no projection is"
	if e.Projection != "" {
		what = "the projection " + e.Projection + " is not"
	}
	return fmt.Sprintf(
		"%s stopped at sequence %d, and only the event that stops a projection can be skipped: %s",
		what, e.Sequence, strings.Join(states, "; "),
	)
}

// skipLog records skipped events; *directory.Log implements it.
type skipLog interface {
	Skip(ctx context.Context, o domain.Origin, skip domain.ProjectionSkipped) error
}

// Skip makes a projection skip the event at seq, which stops the projection. It records the skip in
// the directory's log, so that every later build skips the event too, and waits up to 15 s until
// the projection has passed the event. It returns the projection's status then. An empty name
// stands for the projection that is stopped at seq; if both are, for the directory's.
//
// Skip fails with a *NotStoppedError if the projection is not stopped at seq, and with another
// error if the read models are of another stream.
func (c *Control) Skip(
	ctx context.Context, log skipLog, o domain.Origin, name string, seq uint64, why string,
) (schema.Status, error) {
	all, err := c.Status(ctx)
	if err != nil {
		return schema.Status{}, err
	}
	p, ok := stoppedAt(all, name, seq)
	if !ok {
		return schema.Status{},
			&NotStoppedError{Projection: name, Sequence: seq, Projections: all}
	}
	if !p.StoppedByEvent() {
		return p, fmt.Errorf("%w: %s", errNotSkippable, p.Stopped)
	}
	err = log.Skip(ctx, o, domain.ProjectionSkipped{
		Projection: p.Name, Sequence: seq, Type: schema.StorableText(p.Stopped.Type),
		Error: schema.StorableText(p.Stopped.Err.Error()), Why: why,
	})
	if err != nil {
		return p, err
	}
	return c.await(ctx, p.Name, func(p schema.Status) bool {
		return p.Sequence >= seq || p.State == schema.StateStoppedByOperator ||
			p.State == schema.StateUnattended
	})
}

// stoppedAt returns the projection with the name, or any if name is empty, that is stopped at seq;
// false if there is none.
func stoppedAt(all []schema.Status, name string, seq uint64) (schema.Status, bool) {
	for _, p := range all {
		if p.Stopped != nil && p.Stopped.Sequence == seq && (name == "" || p.Name == name) {
			return p, true
		}
	}
	return schema.Status{}, false
}
