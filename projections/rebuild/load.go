package rebuild

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// activityRows is how many rows of activity are written at once.
const activityRows = 8192

// errContradiction means that an event contradicts itself or another. Applying the events one by
// one finds that event.
var errContradiction = errors.New("an event contradicts itself or another")

// load creates the target's tables and fills the directory's tables up to a sequence: it folds
// events into rows, and copies the rows into tables without keys and indexes. It fails with
// errContradiction if the events must be applied one by one.
func (b *build) load(ctx context.Context, until uint64) error {
	b.phase.Store(PhaseLoad)
	b.directory().head.Store(until)
	if err := b.createTarget(ctx, false); err != nil {
		return err
	}
	skipped, err := projector.Skips(b.cfg.Directory.Skips).Sequences(ctx, schema.Directory)
	if err != nil {
		return err
	}
	l := &loading{
		build: b, skipped: skipped, folded: &projector.Changes{},
		activity: make(chan []domain.Activity, 2), entities: make(chan *projector.Changes),
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return l.fold(groupCtx, until) })
	group.Go(func() error { return b.withTarget(groupCtx, l.writeActivity) })
	group.Go(func() error { return b.withTarget(groupCtx, l.writeEntities) })
	if err := group.Wait(); err != nil {
		if projector.IsPermanent(err) {
			return fmt.Errorf("%w: %w", errContradiction, err)
		}
		return err
	}
	return b.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := schema.New(conn).SetCheckpoint(ctx, schema.SetCheckpointParams{
			Projection: schema.Directory, Sequence: int64(until), EventID: l.eventID,
		})
		return err
	})
}

// loading is a load under way: fold sends rows to the two writers.
type loading struct {
	build   *build
	skipped map[uint64]bool
	// folded has the rows that are not sent yet. Only fold and its callees use it.
	folded *projector.Changes
	// eventID is the id of the last event that was folded.
	eventID string

	activity chan []domain.Activity
	entities chan *projector.Changes
}

// fold reads the events and sends their rows. It closes both channels.
func (l *loading) fold(ctx context.Context, until uint64) error {
	defer close(l.activity)
	defer close(l.entities)
	err := l.build.cfg.Directory.Replay(ctx, 0, until, func(batch []directory.Recorded) error {
		for _, r := range batch {
			if err := l.add(r); err != nil {
				return err
			}
		}
		l.build.directory().at.Advance(batch[len(batch)-1].Seq)
		return l.send(ctx, activityRows, l.build.cfg.LoadRows)
	})
	if err != nil {
		return err
	}
	return l.send(ctx, 1, 1)
}

// add folds one event.
func (l *loading) add(r directory.Recorded) error {
	l.eventID = r.Event.ID
	switch {
	case l.skipped[r.Seq]:
		return nil
	case r.Err != nil:
		return &schema.StoppedError{
			Projection: schema.Directory, Sequence: r.Seq, Type: r.Event.Type, Err: r.Err,
		}
	}
	if err := l.folded.Add(r); err != nil {
		return fmt.Errorf("sequence %d: %w", r.Seq, err)
	}
	return nil
}

// send sends the folded rows of activity to writeActivity if there are at least leastActivity, and
// the other folded rows to writeEntities if there are at least leastEntities.
func (l *loading) send(ctx context.Context, leastActivity, leastEntities int) error {
	size := l.folded.Size()
	if n := len(l.folded.Activity); n >= leastActivity {
		if err := send(ctx, l.activity, l.folded.Activity); err != nil {
			return err
		}
		l.folded.Activity = nil
	}
	if size < leastEntities {
		return nil
	}
	next := &projector.Changes{Activity: l.folded.Activity}
	l.folded.Activity = nil
	if err := send(ctx, l.entities, l.folded); err != nil {
		return err
	}
	l.folded = next
	return nil
}

func send[T any](ctx context.Context, to chan<- T, value T) error {
	select {
	case to <- value:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeActivity copies the rows of activity that it receives, and adds the table's key and indexes
// at the end.
func (l *loading) writeActivity(ctx context.Context, conn *pgx.Conn) error {
	for rows := range l.activity {
		if err := schema.Activity.Copy(ctx, conn, rows); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := execAll(ctx, conn, schema.Activity.AddKey()); err != nil {
		return err
	}
	if err := execAll(ctx, conn, schema.Activity.Indexes...); err != nil {
		return err
	}
	if err := projector.ExpireActivity().Load(ctx, conn, false); err != nil {
		return err
	}
	return execAll(ctx, conn, "ANALYZE "+schema.Activity.Name)
}

// writeEntities writes the changes that it receives. The first changes fill empty tables without
// keys. Later ones also change rows that exist, so it adds the primary keys before them.
func (l *loading) writeEntities(ctx context.Context, conn *pgx.Conn) error {
	var addKeys, addIndexes, names []string
	for _, table := range schema.Entities() {
		addKeys = append(addKeys, table.AddKey())
		addIndexes = append(addIndexes, table.Indexes...)
		names = append(names, table.Name)
	}
	written := 0
	for changes := range l.entities {
		if written == 1 {
			if err := execAll(ctx, conn, addKeys...); err != nil {
				return err
			}
			addKeys = nil
		}
		for _, statement := range changes.Statements() {
			if err := statement.Load(ctx, conn, written == 0); err != nil {
				return err
			}
		}
		written++
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := execAll(ctx, conn, append(addKeys, addIndexes...)...); err != nil {
		return err
	}
	return execAll(ctx, conn, "ANALYZE "+strings.Join(names, ", "))
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
