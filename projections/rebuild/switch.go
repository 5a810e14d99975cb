package rebuild

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections"
	"hubcloud/projections/apply"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/schema"
)

// catchUpTimeout bounds how long a switch keeps the projector waiting while the target catches up.
// It must be shorter than the time that a session may be silent within a transaction.
const catchUpTimeout = 2 * time.Second

// errNotYet means that the switch must be tried again.
var errNotYet = errors.New("not yet")

// trySwitch switches in one transaction: see the package documentation. It fails with errNotYet if
// the switch must be tried again. It returns the name that the replaced read models have now.
func (b *build) trySwitch(ctx context.Context, f *following) (replaced string, err error) {
	b.connMu.Lock()
	defer b.connMu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, database.CommitTimeout)
	defer cancel()
	replaced = schema.OldName(b.cfg.Schema, b.target, time.Now())
	err = pgx.BeginFunc(ctx, b.conn, func(tx pgx.Tx) error {
		if err := b.lockCheckpoints(ctx, tx); err != nil {
			return err
		}
		queries := query.New(tx) // the connection finds the tables in use
		stops, err := queries.Stops(ctx)
		if err != nil {
			return err
		}
		if len(stops) > 0 {
			b.phase.Store(PhaseHeld)
			return errNotYet
		}
		b.phase.Store(PhaseSwitch)
		if err := b.catchUp(ctx, queries); err != nil {
			return err
		}
		f.stop()
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
	if database.HasCode(err, database.CodeLockNotAvailable) {
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
	queries := query.New(tx)
	if err := queries.RecordRetired(ctx, query.RecordRetiredParams{
		Name: replaced, DefinitionHash: schema.Hash(),
	}); err != nil {
		return err
	}
	if err := queries.RecordLive(ctx, query.RecordLiveParams{
		Name: b.cfg.Schema, DefinitionHash: schema.Hash(),
	}); err != nil {
		return err
	}
	return database.NotifyListeners(ctx, tx, b.cfg.Schema)
}

// checkTarget returns an error if the target's tables lack events that this process has written to
// them. Commits to the target do not wait for the disk, so a crash of the server can lose some.
func (b *build) checkTarget(ctx context.Context, tx pgx.Tx) error {
	counted := b.directoryAt.At()
	sql := "SELECT sequence FROM " + pgx.Identifier{b.target, "checkpoints"}.Sanitize() +
		" WHERE projection = $1"
	var written uint64
	err := tx.QueryRow(ctx, sql, projections.Directory).Scan(&written)
	if err == nil && written < counted {
		err = fmt.Errorf(
			"the new read models end at event %d, but event %d was written to them: the database "+
				"has lost events; nothing was switched",
			written, counted,
		)
	}
	return err
}

// catchUp waits until the target has everything that the schema in use has, which does not change
// meanwhile. If the schema in use was built from another stream, there is nothing to wait for.
func (b *build) catchUp(ctx context.Context, queries *query.Queries) error {
	directoryAt, err := queries.Checkpoint(ctx, projections.Directory)
	if err != nil {
		return err
	}
	presenceAt, err := queries.Checkpoint(ctx, projections.Presence)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	otherStream, err := isOfOtherStream(waiting, b.cfg.Directory, directoryAt)
	if err != nil {
		return notYet(ctx, err)
	}
	if !otherStream {
		if err := b.directoryAt.Wait(waiting, uint64(directoryAt.Sequence)); err != nil {
			return notYet(ctx, err)
		}
	}
	presenceHead, err := b.presence.Head(waiting, uint64(presenceAt.Sequence))
	if err != nil {
		return notYet(ctx, err)
	}
	until := min(uint64(presenceAt.Sequence), presenceHead)
	if err := b.presenceAt.Wait(waiting, until); err != nil {
		return notYet(ctx, err)
	}
	return nil
}

// isOfOtherStream reports whether the tables with a checkpoint were built from another log than
// dir.
func isOfOtherStream(
	ctx context.Context, dir apply.Directory, at query.CheckpointRow,
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
