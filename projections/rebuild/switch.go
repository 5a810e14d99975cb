package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
)

// catchUpTimeout bounds how long a switch keeps the projector waiting while the target catches up.
// It must be shorter than the time that a session may be silent within a transaction.
const catchUpTimeout = 2 * time.Second

// errNotYet means that the switch must be tried again.
var errNotYet = errors.New("not yet")

// trySwitch switches in one transaction: see the package documentation. It fails with errNotYet if
// the switch must be tried again. It returns the name that the replaced read models have now.
func (b *build) trySwitch(ctx context.Context, stop func()) (replaced string, err error) {
	b.connMu.Lock()
	defer b.connMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, schema.CommitTimeout)
	defer cancel()
	replaced = schema.OldName(b.cfg.Schema, b.target, time.Now())
	err = pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
		if err := b.lockCheckpoints(ctx, tx); err != nil {
			return err
		}
		stops, err := schema.New(tx).Stops(ctx)
		if err != nil {
			return err
		}
		if len(stops) > 0 {
			b.phase.Store(PhaseHeld)
			return errNotYet
		}
		b.phase.Store(PhaseSwitch)
		if err := b.catchUp(ctx, tx); err != nil {
			return err
		}
		stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := b.checkTarget(ctx, tx); err != nil {
			return err
		}
		return b.swap(ctx, tx, replaced)
	})
	if err != nil {
		return "", err
	}
	return replaced, nil
}

// lockCheckpoints waits until no projector and no reader of several tables has a transaction open,
// and keeps new ones waiting.
func (b *build) lockCheckpoints(ctx context.Context, tx pgx.Tx) error {
	lock := "SET LOCAL lock_timeout = '1s'; LOCK TABLE " + pgx.Identifier{b.cfg.Schema}.Sanitize() +
		".checkpoints IN ACCESS EXCLUSIVE MODE"
	_, err := tx.Exec(ctx, lock)
	if schema.HasCode(err, schema.CodeLockNotAvailable) {
		return errNotYet
	}
	return err
}

// swap renames both schemas and records that.
func (b *build) swap(ctx context.Context, tx pgx.Tx, replaced string) error {
	live := pgx.Identifier{b.cfg.Schema}.Sanitize()
	target := pgx.Identifier{b.target}.Sanitize()
	for _, statement := range []string{
		"UPDATE " + target + ".checkpoints SET built = true, stopped_sequence = NULL, " +
			"stopped_type = NULL, stopped_error = NULL, " +
			"term = (SELECT max(term) FROM " + live + ".checkpoints)",
		"ALTER SCHEMA " + live + " RENAME TO " + pgx.Identifier{replaced}.Sanitize(),
		"ALTER SCHEMA " + target + " RENAME TO " + live,
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	queries := schema.New(tx)
	if err := queries.RecordRetired(ctx, schema.RecordRetiredParams{
		Name: replaced, DefinitionHash: schema.Hash(),
	}); err != nil {
		return err
	}
	if err := queries.RecordLive(ctx, schema.RecordLiveParams{
		Name: b.cfg.Schema, DefinitionHash: schema.Hash(),
	}); err != nil {
		return err
	}
	return schema.NotifyListeners(ctx, tx, b.cfg.Schema)
}

// checkTarget returns an error if the target's tables lack events that this process has written to
// them. Commits to the target do not wait for the disk, so a crash of the server can lose some.
func (b *build) checkTarget(ctx context.Context, tx pgx.Tx) error {
	const lacking = "the new read models of %s end at event %d, but event %d was written to them: " +
		"the database has lost events; nothing was switched"
	sql := "SELECT sequence FROM " + pgx.Identifier{b.target, "checkpoints"}.Sanitize() +
		" WHERE projection = $1"
	for _, c := range b.copies {
		var written uint64
		if err := tx.QueryRow(ctx, sql, c.Name()).Scan(&written); err != nil {
			return err
		}
		if counted := c.at.At(); written < counted {
			return fmt.Errorf(lacking, c.Name(), written, counted)
		}
	}
	return nil
}

// catchUp waits until the target has everything that the schema in use has, which does not change
// meanwhile. If the schema in use was built from another stream, there is nothing to wait for.
func (b *build) catchUp(ctx context.Context, tx pgx.Tx) error {
	live, err := readPositions(ctx, tx) // the connection finds the tables in use
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	otherStream, err := isOfOtherStream(waiting, b.cfg.Directory, live[schema.Directory])
	if otherStream {
		delete(live, schema.Directory)
	}
	if err == nil {
		err = b.readHeads(waiting, live)
	}
	for _, c := range b.copies {
		if err == nil {
			err = c.at.Wait(waiting, min(live.of(c), c.head.Load()))
		}
	}
	if err != nil {
		return notYet(ctx, err)
	}
	return nil
}

// isOfOtherStream reports whether the tables with a checkpoint were built from another log than
// dir.
func isOfOtherStream(
	ctx context.Context, dir projector.Directory, at schema.Checkpoint,
) (bool, error) {
	if at.Sequence == 0 {
		return false, nil
	}
	event, ok, err := dir.At(ctx, uint64(at.Sequence))
	if err != nil {
		return false, fmt.Errorf("compare with the directory: %w", err)
	}
	if !ok {
		return true, nil
	}
	return at.EventID != "" &&
		(event.Seq != uint64(at.Sequence) || event.Event.ID != at.EventID), nil
}

// notYet returns errNotYet with the error of a wait, or ctx's error if ctx has ended.
func notYet(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %w", errNotYet, err)
}
