package projector

import (
	"context"

	"hubcloud/projections/schema"

	"hubcloud/streams/directory"
)

// What tests of the package use.
var (
	TakeOver     = takeOver
	ErrMoved     = errMoved
	ErrTakenOver = errTakenOver
)

// RecordStop records a stop of the directory's projection as the projector of a term.
func (p *Projector) RecordStop(
	ctx context.Context, term int64, at Checkpoint, stopped *schema.StoppedError,
) bool {
	return p.ofTerm(term).recordStop(ctx, at, stopped)
}

// RunOnce runs the directory's projection once as the projector of a term.
func (p *Projector) RunOnce(ctx context.Context, term int64) error {
	_, err := p.ofTerm(term).attempt(ctx)
	return err
}

func (p *Projector) ofTerm(term int64) *projection[directory.Recorded] {
	return newProjection(p, p.directory, &schema.Position{}, term)
}
