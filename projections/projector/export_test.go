package projector

import (
	"context"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// What tests of the package use.
type (
	Writer[E any]   = writer[E]
	DirectorySource = directorySource
)

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

// DeleteReleased deletes the states of released hubs of journal 0 as the projector of a term.
func (p *Projector) DeleteReleased(ctx context.Context, term int64) ([]domain.HubID, error) {
	pool, err := newPool(ctx, p.cfg.Database)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return p.deleteReleased(ctx, pool, 0, term)
}

// EmptyStates empties the states of journal 0, which another journal has made, as the projector of a
// term that has read a checkpoint.
func (p *Projector) EmptyStates(
	ctx context.Context, conn *pgx.Conn, term int64, at Checkpoint,
) error {
	a := newAttempt(newProjection(p, p.devices[0], &schema.Position{}, term), conn)
	a.writer.Checkpoint = at
	return a.otherStream(ctx, "a test says so")
}

func (p *Projector) ofTerm(term int64) *projection[directory.Recorded] {
	return newProjection(p, p.directory, &schema.Position{}, term)
}
