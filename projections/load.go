package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"hubcloud/projections/internal/query"
	"hubcloud/streams/directory"
)

const (
	// loadRows is how many rows of a load are folded in memory before they are written, some 50 MB
	// of them; as many again may be on their way.
	loadRows = 100_000
	// loadActivity is how many rows of activity are written at once.
	loadActivity = 8192
)

// errContradicts says that the history cannot be loaded at once: some event contradicts another.
// Applied one by one it is found out which.
var errContradicts = errors.New("the directory cannot be loaded at once")

// load makes the target's tables of the directory up to a sequence, and begins from nothing: it
// folds events into rows, and copies rows into tables that have no keys and indexes yet. It fails
// with errContradicts when the events must be applied one by one.
func (b *build) load(ctx context.Context, until uint64) error {
	b.phase.Store(PhaseLoad)
	b.head.Store(until)
	if err := b.create(ctx, false); err != nil {
		return err
	}
	skipped, err := sequencesOf(ctx, b.dir.Skips, DirectoryProjection)
	if err != nil {
		return err
	}
	acts, chunks := make(chan []activityRow, 2), make(chan *changes)
	var eventID string
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		defer close(acts)
		defer close(chunks)
		eventID, err = b.fold(groupCtx, until, skipped, acts, chunks)
		return err
	})
	group.Go(func() error {
		return b.onTarget(
			groupCtx,
			func(ctx context.Context, conn *pgx.Conn) error { return writeActivity(ctx, conn, acts) },
		)
	})
	group.Go(func() error {
		return b.onTarget(
			groupCtx,
			func(ctx context.Context, conn *pgx.Conn) error { return writeChunks(ctx, conn, chunks) },
		)
	})
	if err := group.Wait(); err != nil {
		if isPermanent(err) {
			return fmt.Errorf("%w: %w", errContradicts, err)
		}
		return err
	}
	return b.onTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := query.New(conn).SetCheckpoint(ctx, query.SetCheckpointParams{
			Projection: DirectoryProjection, Sequence: int64(until), EventID: eventID,
		})
		return err
	})
}

// create makes the target's tables, in place of those that are there.
func (b *build) create(ctx context.Context, indexed bool) error {
	return b.onTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := forgetSchema(ctx, conn, b.target); err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			err := createTables(ctx, tx, b.target)
			if err == nil && indexed {
				_, err = tx.Exec(ctx, indexes)
			}
			return err
		})
	})
}

// fold reads the events and gives rows, and the id of the last event.
func (b *build) fold(
	ctx context.Context, until uint64, skipped map[uint64]bool, acts chan<- []activityRow,
	chunks chan<- *changes,
) (eventID string, err error) {
	folded := &changes{}
	give := func(least int) error {
		if len(folded.acts) > 0 && (len(folded.acts) >= loadActivity || least == 0) {
			if !send(ctx, acts, folded.acts) {
				return ctx.Err()
			}
			folded.acts = nil
		}
		if size := folded.size(); size > 0 && size >= least {
			acts := folded.acts
			folded.acts = nil
			if !send(ctx, chunks, folded) {
				return ctx.Err()
			}
			folded = &changes{acts: acts}
		}
		return nil
	}
	err = b.dir.Replay(ctx, 0, until, func(batch []directory.Recorded) error {
		for _, r := range batch {
			eventID = r.Event.ID
			if skipped[r.Seq] {
				continue
			}
			if r.Err != nil {
				return &StoppedError{
					Projection: DirectoryProjection,
					Sequence:   r.Seq,
					Type:       r.Event.Type,
					Err:        r.Err,
				}
			}
			if err := folded.add(r); err != nil {
				return fmt.Errorf("sequence %d: %w", r.Seq, err)
			}
		}
		b.directory.advance(batch[len(batch)-1].Seq)
		return give(b.rows)
	})
	if err != nil {
		return "", err
	}
	return eventID, give(0)
}

func send[T any](ctx context.Context, to chan<- T, what T) bool {
	select {
	case to <- what:
		return true
	case <-ctx.Done():
		return false
	}
}

// writeActivity copies rows of activity as they come, and makes the table's key at the end.
func writeActivity(ctx context.Context, conn *pgx.Conn, acts <-chan []activityRow) error {
	for rows := range acts {
		written := &changes{acts: rows}
		if _, err := written.activityStatement().copyInto(ctx, conn); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := execAll(ctx, conn, indexesWhere(func(statement string) bool { return strings.Contains(statement, " activity ") })...); err != nil {
		return err
	}
	if err := expireActivity().load(ctx, conn, false); err != nil {
		return err
	}
	return execAll(ctx, conn, "ANALYZE activity")
}

// writeChunks writes rows as they come. The first of them go into tables without keys, at once;
// those that follow change rows that are there, and so the primary keys come in between.
func writeChunks(ctx context.Context, conn *pgx.Conn, chunks <-chan *changes) error {
	isKey := func(statement string) bool {
		return strings.HasPrefix(statement, "ALTER TABLE") &&
			!strings.Contains(statement, " activity ")
	}
	written := 0
	for chunk := range chunks {
		if written == 1 {
			if err := execAll(ctx, conn, indexesWhere(isKey)...); err != nil {
				return err
			}
		}
		for _, s := range chunk.statements() {
			if err := s.load(ctx, conn, written == 0); err != nil {
				return err
			}
		}
		written++
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	rest := indexesWhere(func(statement string) bool {
		return !strings.Contains(statement, " activity ") && (written < 2 || !isKey(statement))
	})
	return execAll(
		ctx,
		conn,
		append(
			rest,
			"ANALYZE orgs, members, people, invitations, sites, hubs, device_labels, api_keys",
		)...)
}

// load runs a statement, as a copy where that does the same.
func (s statement) load(ctx context.Context, conn *pgx.Conn, emptyTables bool) error {
	if emptyTables || !strings.Contains(s.sql, "ON CONFLICT") {
		if copied, err := s.copyInto(ctx, conn); copied || err != nil {
			return err
		}
	}
	batch := &pgx.Batch{}
	s.queue(batch)
	return conn.SendBatch(ctx, batch).Close()
}

// indexesWhere gives some of the statements that make keys and indexes.
func indexesWhere(wanted func(statement string) bool) []string {
	var some []string
	for statement := range strings.SplitSeq(indexes, ";\n") {
		lines := strings.Split(statement, "\n")
		if statement = lines[len(lines)-1]; statement != "" && wanted(statement) {
			some = append(some, statement)
		}
	}
	return some
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}
