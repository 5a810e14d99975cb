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
	"hubcloud/projections/tables"
	"hubcloud/streams/directory"
)

// Verified is the result of comparing the tables of one projection.
type Verified struct {
	// Name is one of projections.Names.
	Name string
	// Sequence is the sequence of the last event that the compared read models have; for
	// projections.Devices, the number of commits in the journals up to there.
	Sequence uint64
	// Rows is how many rows were compared, Differences how many differences were found.
	Rows, Differences int
	// Moving is how many hubs could not be compared, because the bucket had a newer value of them
	// in every round. It is 0 for the other projections.
	Moving int
}

const (
	// presenceRounds is how often moving hubs are compared again.
	presenceRounds = 10
	// presencePause is the pause before each round.
	presencePause = 300 * time.Millisecond
)

// verification is a comparison under way.
type verification struct {
	build *build
	found func(projection string, d Difference) error
	// moving are the hubs that must be compared again: see comparePresence.
	moving []string
	// directoryResult and presenceResult are the results of run.
	directoryResult, presenceResult Verified
}

func (v *verification) run(ctx context.Context) ([]Verified, error) {
	v.directoryResult.Name, v.presenceResult.Name = projections.Directory, projections.Presence
	begin, err := v.prepareTarget(ctx)
	if err != nil {
		return nil, err
	}
	err = v.atOneMoment(ctx, func(ctx context.Context, live pgx.Tx, at moment) error {
		if err := v.reachDirectory(ctx, begin.directory, at.directory); err != nil {
			return err
		}
		if err := v.reachPresence(ctx, at.presence); err != nil {
			return err
		}
		v.build.phase.Store(PhaseCompare)
		v.directoryResult.Sequence = at.directory
		if err := v.compareDirectory(ctx, live); err != nil {
			return err
		}
		return v.comparePresence(ctx, live, at, nil)
	})
	for round := 0; err == nil && len(v.moving) > 0 && round < presenceRounds; round++ {
		database.Pause(ctx, presencePause)
		err = v.atOneMoment(ctx, func(ctx context.Context, live pgx.Tx, at moment) error {
			if err := v.reachPresence(ctx, at.presence); err != nil {
				return err
			}
			return v.comparePresence(ctx, live, at, v.moving)
		})
	}
	v.presenceResult.Moving = len(v.moving)
	return []Verified{v.directoryResult, v.presenceResult}, err
}

// prepareTarget builds the target up to where the read models in use are now.
func (v *verification) prepareTarget(ctx context.Context) (begin moment, err error) {
	err = v.atOneMoment(ctx, func(ctx context.Context, _ pgx.Tx, at moment) error {
		begin = at
		return nil
	})
	if err != nil {
		return begin, err
	}
	if err := v.loadExactly(ctx, begin.directory); err != nil {
		return begin, err
	}
	return begin, v.reachPresence(ctx, begin.presence)
}

// moment is the checkpoints of the read models in use.
type moment struct{ directory, presence uint64 }

// atOneMoment runs fn in a transaction that sees the read models in use between two batches. It
// fails with projections.ErrOtherStream if they are not of these streams.
func (v *verification) atOneMoment(
	ctx context.Context, fn func(ctx context.Context, live pgx.Tx, at moment) error,
) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return database.WithConn(ctx, v.build.cfg.ConnConfig, func(conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
			// The transaction is silent while the target catches up. It holds up nothing but a
			// switch.
			const allowSilence = "SET LOCAL idle_in_transaction_session_timeout = '5min'"
			if _, err := tx.Exec(ctx, allowSilence); err != nil {
				return err
			}
			// A rebuild locks this table while it switches, so all tables are of the same build.
			if _, err := tx.Exec(ctx, "LOCK TABLE checkpoints IN ACCESS SHARE MODE"); err != nil {
				return err
			}
			at, err := v.momentOf(ctx, query.New(tx))
			if err != nil {
				return err
			}
			return fn(ctx, tx, at)
		})
	})
}

func (v *verification) momentOf(
	ctx context.Context, queries *query.Queries,
) (at moment, err error) {
	directoryAt, err := queries.Checkpoint(ctx, projections.Directory)
	if err != nil {
		return at, err
	}
	presenceAt, err := queries.Checkpoint(ctx, projections.Presence)
	if err != nil {
		return at, err
	}
	at = moment{uint64(directoryAt.Sequence), uint64(presenceAt.Sequence)}
	otherStream, err := isOfOtherStream(ctx, v.build.cfg.Directory, directoryAt)
	if err != nil {
		return at, err
	}
	head, err := v.build.presence.Head(ctx, at.presence)
	if err != nil {
		return at, err
	}
	if otherStream || at.presence > head {
		return at, fmt.Errorf(
			"%w: build them again with `hubcloud projections rebuild`", projections.ErrOtherStream,
		)
	}
	return at, nil
}

// loadExactly makes the target's tables of the directory up to a sequence.
func (v *verification) loadExactly(ctx context.Context, until uint64) error {
	err := v.build.load(ctx, until)
	if !errors.Is(err, errContradiction) {
		return err
	}
	if err := v.build.startOver(ctx); err != nil {
		return err
	}
	return v.reachDirectory(ctx, 0, until)
}

// reachDirectory brings the target from one sequence exactly to another.
func (v *verification) reachDirectory(ctx context.Context, from, until uint64) error {
	return v.build.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		w, err := v.build.directoryWriter(ctx, conn, from)
		if err != nil {
			return err
		}
		return v.build.cfg.Directory.Replay(
			ctx, from, until, func(batch []directory.Recorded) error { return w.Apply(ctx, batch) },
		)
	})
}

// reachPresence brings the target to a revision of the bucket, or beyond where values were
// replaced meanwhile.
func (v *verification) reachPresence(ctx context.Context, until uint64) error {
	if v.build.presenceAt.At() >= until {
		return nil
	}
	err := v.build.followPresence(ctx, func(batch []apply.PresenceEntry) error {
		if v.build.presence.Header(batch[len(batch)-1]).Sequence >= until {
			return errFarEnough
		}
		return nil
	})
	if errors.Is(err, errFarEnough) {
		return nil
	}
	return err
}

// compareDirectory compares every table of the directory.
func (v *verification) compareDirectory(ctx context.Context, live pgx.Tx) error {
	return v.build.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		for _, table := range tables.Of(projections.Directory) {
			t := comparedTable(table)
			all := t.selectAll("")
			c := comparison{
				live: selection{live, all, nil}, rebuilt: selection{conn, all, nil}, table: t,
			}
			rows, err := c.run(ctx, func(d Difference) error {
				v.directoryResult.Differences++
				return v.found(projections.Directory, d)
			})
			if err != nil {
				return err
			}
			v.directoryResult.Rows += rows
		}
		return nil
	})
}

// comparePresence compares the presence of some hubs, or of all if hubs is nil. A hub that differs
// while the bucket has a newer value than the read models is moving: its older value can no longer
// be read.
func (v *verification) comparePresence(
	ctx context.Context, live pgx.Tx, at moment, hubs []string,
) error {
	v.moving = nil
	v.presenceResult.Sequence = at.presence
	return v.build.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		t := comparedTable(tables.HubPresence.Definition)
		some, args := "", []any(nil)
		if hubs != nil {
			some, args = " WHERE hub_id = ANY ($1::text[])", []any{hubs}
		}
		sql := t.selectAll(some)
		c := comparison{
			live: selection{live, sql, args}, rebuilt: selection{conn, sql, args}, table: t,
		}
		rows, err := c.run(ctx, func(d Difference) error {
			moving, err := v.isMoving(ctx, d.Key[0].Value, at)
			if err != nil || moving {
				return err
			}
			v.presenceResult.Differences++
			return v.found(projections.Presence, d)
		})
		if hubs == nil {
			v.presenceResult.Rows = rows
		}
		return err
	})
}

// isMoving reports whether the bucket has a newer value of a hub than the read models, and adds
// such a hub to v.moving.
func (v *verification) isMoving(ctx context.Context, hub string, at moment) (bool, error) {
	// Differences of one hub come one after the other.
	if n := len(v.moving); n > 0 && v.moving[n-1] == hub {
		return true, nil
	}
	revision, err := v.build.presence.HubRevision(ctx, hub)
	if err != nil || revision <= at.presence {
		return false, err
	}
	v.moving = append(v.moving, hub)
	return true, nil
}
