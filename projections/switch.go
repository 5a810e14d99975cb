package projections

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"hubcloud/projections/internal/query"
	"hubcloud/streams/directory"
)

const (
	// nearEnough is how many events the target may be behind for a switch to be tried: it takes
	// them while the projector waits.
	nearEnough = 200
	// catchUp bounds how long the projector waits for that.
	catchUp = 2 * time.Second
	// tryAgain is the pause between two tries.
	tryAgain = 100 * time.Millisecond
)

// makeAnew makes the target and has it take the place of the schema in use: it loads the directory
// up to where it is now, follows both streams, and switches once it has what the schema in use has.
func (b *build) makeAnew(ctx context.Context) error {
	head, err := b.dir.Head(ctx, 0)
	if err != nil {
		return err
	}
	goal := head
	err = b.load(ctx, head)
	if errors.Is(err, errContradicts) {
		// Somewhere is an event that cannot be applied. The slow way finds it, and shows it by its
		// sequence.
		b.log.Warn(
			"the directory cannot be loaded at once; applying its events one by one", "error", err,
		)
		head, err = 0, b.beginAgain(ctx)
	}
	if err != nil {
		return err
	}
	b.phase.Store(PhaseFollow)
	following, stop := context.WithCancel(ctx)
	defer stop()
	switching, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var followers sync.WaitGroup
	for _, follow := range []func(context.Context) error{
		func(ctx context.Context) error { return b.followDirectory(ctx, head) },
		func(ctx context.Context) error { return b.followPresence(ctx, nil) },
	} {
		followers.Go(func() {
			if err := follow(following); following.Err() == nil {
				fail(err)
			}
		})
	}
	settle := func() error {
		stop()
		followers.Wait()
		return context.Cause(switching)
	}
	err = b.switchOver(switching, goal, settle)
	if cause := context.Cause(switching); err != nil && cause != nil {
		err = cause
	}
	stop()
	followers.Wait()
	return err
}

// beginAgain makes the target's tables anew, with their keys and indexes, for events that are
// applied one by one.
func (b *build) beginAgain(ctx context.Context) error {
	_, changes := b.directory.position()
	b.directory.set(0, changes)
	return b.create(ctx, true)
}

// followDirectory applies the directory after a sequence, until ctx ends.
func (b *build) followDirectory(ctx context.Context, after uint64) error {
	return b.onTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		w, err := b.directoryWriter(ctx, conn, after)
		if err != nil {
			return err
		}
		return b.dir.Follow(
			ctx, after, func(batch []directory.Recorded) error { return w.apply(ctx, batch) },
		)
	})
}

func (b *build) directoryWriter(
	ctx context.Context, conn *pgx.Conn, after uint64,
) (*writer[directory.Recorded], error) {
	skipped, err := sequencesOf(ctx, b.dir.Skips, DirectoryProjection)
	w := &writer[directory.Recorded]{
		source:     &directorySource{log: b.dir},
		conn:       conn,
		checkpoint: after,
		skipped:    skipped,
	}
	w.committed = func(int) { b.directory.advance(w.checkpoint) }
	return w, err
}

// errEnough ends a follower that is to go no further.
var errEnough = errors.New("far enough")

// followPresence applies the presence bucket from where the tables are, until ctx ends or seen,
// which hears of what is written, answers errEnough; nil hears nothing.
func (b *build) followPresence(ctx context.Context, seen func(batch []presenceEntry) error) error {
	return b.onTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		at, err := query.New(conn).Checkpoint(ctx, PresenceProjection)
		if err != nil {
			return err
		}
		w := &writer[presenceEntry]{
			source:     &presenceSource{bucket: b.presence},
			conn:       conn,
			checkpoint: uint64(at.Sequence),
		}
		if w.skipped, err = sequencesOf(ctx, b.dir.Skips, PresenceProjection); err != nil {
			return err
		}
		w.committed = func(int) { b.presenceAt.advance(w.checkpoint) }
		for {
			err := w.source.follow(ctx, w.checkpoint, func(batch []presenceEntry) error {
				if err := w.apply(ctx, batch); err != nil || seen == nil {
					return err
				}
				return seen(batch)
			})
			if !errors.Is(err, errAsleep) || ctx.Err() != nil {
				return err
			}
		}
	})
}

// switchOver waits until the target has all that there was when it was begun and is near the
// streams' ends, and switches; settle ends whoever writes to the target.
func (b *build) switchOver(ctx context.Context, goal uint64, settle func() error) error {
	for {
		head, err := b.dir.Head(ctx, 0)
		if err != nil {
			return err
		}
		b.head.Store(head)
		if at, _ := b.directory.position(); at >= goal && at+nearEnough >= head {
			switch err := b.try(ctx, settle); {
			case err == nil:
				return nil
			case !errors.Is(err, errNotYet):
				return err
			}
		}
		if pause(ctx, tryAgain); ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// errNotYet says that the switch has to be tried again.
var errNotYet = errors.New("not yet")

// try switches in one transaction. The projector begins each batch with a row of the table
// checkpoints, and whoever reads several tables of one moment begins with that table too: while it
// is locked nobody is half way. Whoever reads a table goes on reading, in the schema in which its
// statement began.
func (b *build) try(ctx context.Context, settle func() error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, commitLimit)
	defer cancel()
	live := pgx.Identifier{b.schema}.Sanitize()
	old := b.schema + suffixOld + time.Now().
		UTC().
		Format("20060102t150405") +
		b.target[strings.LastIndexByte(b.target, '_'):]
	err := pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
		const noLock = "55P03"
		_, err := tx.Exec(
			ctx,
			"SET LOCAL lock_timeout = '1s'; LOCK TABLE "+live+".checkpoints IN ACCESS EXCLUSIVE MODE",
		)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == noLock {
			return errNotYet
		}
		if err != nil {
			return err
		}
		queries := query.New(tx) // the connection finds the tables of the schema in use
		stops, err := queries.Stops(ctx)
		if err != nil {
			return err
		}
		if len(stops) > 0 {
			b.phase.Store(PhaseHeld)
			return errNotYet
		}
		b.phase.Store(PhaseSwitch)
		if err := b.reachLive(ctx, queries); err != nil {
			return err
		}
		if err := settle(); err != nil {
			return err
		}
		if err := b.check(ctx, tx); err != nil {
			return err
		}
		for _, statement := range []string{
			"UPDATE " + pgx.Identifier{
				b.target,
			}.Sanitize() + ".checkpoints SET built = true, stopped_sequence = NULL, stopped_type " +
				"= NULL, stopped_error = NULL, " +
				"term = (SELECT max(term) FROM " + live + ".checkpoints)",
			"ALTER SCHEMA " + live + " RENAME TO " + pgx.Identifier{old}.Sanitize(),
			"ALTER SCHEMA " + pgx.Identifier{b.target}.Sanitize() + " RENAME TO " + live,
		} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		if err := queries.RecordRetired(ctx, query.RecordRetiredParams{
			Name: old, DefinitionHash: definitionHash(),
		}); err != nil {
			return err
		}
		if err := queries.RecordLive(ctx, query.RecordLiveParams{
			Name: b.schema, DefinitionHash: definitionHash(),
		}); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "SELECT pg_notify($1, 'look')", b.schema)
		return err
	})
	if err == nil {
		b.old = old
	}
	return err
}

// check makes sure of what the switch rests on: that the tables of the target are as far as was
// counted.
func (b *build) check(ctx context.Context, tx pgx.Tx) error {
	counted, _ := b.directory.position()
	var written uint64
	err := tx.QueryRow(ctx, "SELECT sequence FROM "+pgx.Identifier{
		b.target,
	}.Sanitize()+".checkpoints WHERE projection = $1", DirectoryProjection).
		Scan(&written)
	if err == nil && written < counted {
		err = fmt.Errorf(
			"the new read models are at event %d and were counted up to %d; nothing was switched",
			written, counted,
		)
	}
	return err
}

// reachLive waits until the target has what the schema in use has, which stands still meanwhile.
// What is of another stream need not be reached.
func (b *build) reachLive(ctx context.Context, queries *query.Queries) error {
	directoryAt, err := queries.Checkpoint(ctx, DirectoryProjection)
	if err != nil {
		return err
	}
	presenceAt, err := queries.Checkpoint(ctx, PresenceProjection)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, catchUp) // less than transactionLimit
	defer cancel()
	foreign, err := b.isForeign(waiting, directoryAt)
	if err != nil {
		return notYet(ctx, err)
	}
	if !foreign {
		if err := b.directory.wait(waiting, uint64(directoryAt.Sequence)); err != nil {
			return notYet(ctx, err)
		}
	}
	presenceHead, err := (&presenceSource{bucket: b.presence}).head(
		waiting, uint64(presenceAt.Sequence),
	)
	if err != nil {
		return notYet(ctx, err)
	}
	if err := b.presenceAt.wait(waiting, min(uint64(presenceAt.Sequence), presenceHead)); err != nil {
		return notYet(ctx, err)
	}
	return nil
}

// isForeign says whether a checkpoint is that of another log than the directory.
func (b *build) isForeign(ctx context.Context, at query.CheckpointRow) (bool, error) {
	if at.Sequence == 0 {
		return false, nil
	}
	event, ok, err := b.dir.At(ctx, uint64(at.Sequence))
	if err != nil {
		return false, fmt.Errorf("compare with the directory: %w", err)
	}
	return !ok ||
		at.EventID != "" && (event.Seq != uint64(at.Sequence) || event.Event.ID != at.EventID), nil
}

// notYet is the error of a wait that was too long, unless ctx has ended.
func notYet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", errNotYet, err)
}
