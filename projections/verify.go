package projections

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/projections/internal/query"
	"hubcloud/streams/directory"
)

// Verified is what became of comparing one projection's tables.
type Verified struct {
	// Name is DirectoryProjection or PresenceProjection.
	Name string
	// Sequence is what was compared: the read models as they were after that event.
	Sequence uint64
	// Rows is how many rows were compared, Differences how many differences there are.
	Rows, Differences int
	// Moving is how many hubs could not be compared, since the bucket had newer values of them than
	// the read models each time. Always 0 for the directory, and for hubs that stand still for a
	// second in turn.
	Moving int
}

const (
	// presenceRounds is how often hubs that move are compared again, presenceRound the pause
	// between.
	presenceRounds = 10
	presenceRound  = 300 * time.Millisecond
	// presenceTable is the one table of the projection of that name.
	presenceTable = "hub_presence"
)

// Verify builds the read models anew in a schema of its own and compares those in use with them,
// both as of the same event: exactly what the projector had committed at one moment, while reads
// and writes go on. found hears of every difference, one at a time. The schema is dropped
// afterwards; one that was cut off is dropped by the next build. While another process builds, it
// waits for that one first.
//
// The bucket `presence` has only the newest value of each hub: hubs that have moved on since that
// moment are compared again until they stand still.
func (c *Control) Verify(
	ctx context.Context, report func(BuildProgress),
	found func(projection string, d Difference) error,
) (all []Verified, err error) {
	for {
		err := c.builder(PurposeVerify, report).
			hold(ctx, func(ctx context.Context, b *build) (err error) {
				all, err = b.verify(ctx, found)
				return err
			})
		if !errors.Is(err, errBusy) {
			return all, wrapBuild(err)
		}
		if _, err := c.followOther(ctx, report); err != nil && !errors.Is(err, ErrBuildFailed) {
			return nil, wrapBuild(err)
		}
	}
}

// verification is a comparison under way.
type verification struct {
	*build
	found func(projection string, d Difference) error
	// moving are the hubs that are to be compared yet.
	moving []string
}

func (b *build) verify(
	ctx context.Context, found func(string, Difference) error,
) ([]Verified, error) {
	v := &verification{build: b, found: found}
	var begin moment
	err := v.atOneMoment(ctx, func(ctx context.Context, _ pgx.Tx, at moment) error {
		begin = at
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := v.loadAll(ctx, begin.directory); err != nil {
		return nil, err
	}
	if err := v.reachPresence(ctx, begin.presence); err != nil {
		return nil, err
	}
	directoryDone, presenceDone := Verified{
		Name: DirectoryProjection,
	}, Verified{
		Name: PresenceProjection,
	}
	err = v.atOneMoment(ctx, func(ctx context.Context, live pgx.Tx, at moment) error {
		if err := v.reachDirectory(ctx, begin.directory, at.directory); err != nil {
			return err
		}
		if err := v.reachPresence(ctx, at.presence); err != nil {
			return err
		}
		b.phase.Store(PhaseCompare)
		directoryDone.Sequence, presenceDone.Sequence = at.directory, at.presence
		return v.compare(ctx, live, at, &directoryDone, &presenceDone)
	})
	for round := 0; err == nil && len(v.moving) > 0 && round < presenceRounds; round++ {
		pause(ctx, presenceRound)
		err = v.atOneMoment(ctx, func(ctx context.Context, live pgx.Tx, at moment) error {
			if err := v.reachPresence(ctx, at.presence); err != nil {
				return err
			}
			presenceDone.Sequence = at.presence
			return v.comparePresence(ctx, live, at, &presenceDone, true)
		})
	}
	presenceDone.Moving = len(v.moving)
	return []Verified{directoryDone, presenceDone}, err
}

// moment is how far the read models in use were.
type moment struct{ directory, presence uint64 }

// atOneMoment runs fn in a transaction that sees the read models in use as they are after one
// batch.
func (v *verification) atOneMoment(
	ctx context.Context, fn func(ctx context.Context, live pgx.Tx, at moment) error,
) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return onConn(ctx, v.dial, func(conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
			// The transaction waits while the target catches up. It holds up nobody but who would
			// switch.
			if _, err := tx.Exec(ctx, "SET LOCAL idle_in_transaction_session_timeout = '5min'"); err != nil {
				return err
			}
			// Before any table is read, so that it is not of two schemas: see Store.snapshot.
			if _, err := tx.Exec(ctx, "LOCK TABLE checkpoints IN ACCESS SHARE MODE"); err != nil {
				return err
			}
			queries := query.New(tx)
			directoryAt, err := queries.Checkpoint(ctx, DirectoryProjection)
			if err != nil {
				return err
			}
			presenceAt, err := queries.Checkpoint(ctx, PresenceProjection)
			if err != nil {
				return err
			}
			foreign, err := v.isForeign(ctx, directoryAt)
			if err != nil {
				return err
			}
			head, err := (&presenceSource{bucket: v.presence}).head(
				ctx, uint64(presenceAt.Sequence),
			)
			if err != nil {
				return err
			}
			if foreign || uint64(presenceAt.Sequence) > head {
				return fmt.Errorf(
					"%w: build them anew with `hubcloud projections rebuild`", ErrOtherStream,
				)
			}
			return fn(ctx, tx, moment{uint64(directoryAt.Sequence), uint64(presenceAt.Sequence)})
		})
	})
}

// loadAll makes the target's tables of the directory up to a sequence.
func (v *verification) loadAll(ctx context.Context, until uint64) error {
	err := v.load(ctx, until)
	if !errors.Is(err, errContradicts) {
		return err
	}
	// The slow way finds the event.
	if err := v.beginAgain(ctx); err != nil {
		return err
	}
	return v.reachDirectory(ctx, 0, until)
}

// reachDirectory brings the target from one sequence to another, exactly.
func (v *verification) reachDirectory(ctx context.Context, from, until uint64) error {
	return v.onTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		w, err := v.directoryWriter(ctx, conn, from)
		if err != nil {
			return err
		}
		return v.dir.Replay(
			ctx, from, until, func(batch []directory.Recorded) error { return w.apply(ctx, batch) },
		)
	})
}

// reachPresence brings the target to a revision of the bucket, or beyond where values have been
// replaced meanwhile.
func (v *verification) reachPresence(ctx context.Context, until uint64) error {
	if at, _ := v.presenceAt.position(); at >= until {
		return nil
	}
	err := v.followPresence(ctx, func(batch []presenceEntry) error {
		if batch[len(batch)-1].seq >= until {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// compare compares every table.
func (v *verification) compare(
	ctx context.Context, live pgx.Tx, at moment, directoryDone, presenceDone *Verified,
) error {
	err := v.onTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tables, err := tablesOf(ctx, conn, v.target)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if t.name == presenceTable {
				continue
			}
			rows, err := compareTable(ctx, t, live, conn, "", nil, func(d Difference) error {
				directoryDone.Differences++
				return v.found(DirectoryProjection, d)
			})
			if err != nil {
				return err
			}
			directoryDone.Rows += rows
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.comparePresence(ctx, live, at, presenceDone, false)
}

// comparePresence compares hubs' presence: of all hubs, or of those that have moved. A hub that
// differs while the bucket's newest value of it is newer than the moment is not compared: the older
// value, which the read models have, is not to be had any more.
func (v *verification) comparePresence(
	ctx context.Context, live pgx.Tx, at moment, done *Verified, moved bool,
) error {
	where, args := "", []any(nil)
	if moved {
		where, args = " WHERE hub_id = ANY ($1::text[])", []any{v.moving}
	}
	v.moving = nil
	return v.onTarget(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tables, err := tablesOf(ctx, conn, v.target)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if t.name != presenceTable {
				continue
			}
			rows, err := compareTable(ctx, t, live, conn, where, args, func(d Difference) error {
				hub := d.Key[0].Value
				// another column of the same hub
				if n := len(v.moving); n > 0 && v.moving[n-1] == hub {
					return nil
				}
				newest, err := v.newest(ctx, hub)
				if err != nil {
					return err
				}
				if newest > at.presence {
					v.moving = append(v.moving, hub)
					return nil
				}
				done.Differences++
				return v.found(PresenceProjection, d)
			})
			if err != nil {
				return err
			}
			if !moved {
				done.Rows = rows
			}
		}
		return nil
	})
}

// newest gives the revision of a hub's newest value in the bucket, 0 when it has none.
func (v *verification) newest(ctx context.Context, hub string) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	entry, err := v.presence.Get(ctx, hub)
	switch {
	case err == nil:
		return entry.Revision(), nil
	case errors.Is(err, jetstream.ErrInvalidKey): // somebody has made up a row
		return 0, nil
	case !errors.Is(err, jetstream.ErrKeyNotFound):
		return 0, err
	}
	// That it was deleted is a value too.
	watch, err := v.presence.Watch(ctx, hub, jetstream.MetaOnly())
	if err != nil {
		return 0, err
	}
	defer endWatch(watch)
	select {
	case entry := <-watch.Updates():
		if entry == nil {
			return 0, nil
		}
		return entry.Revision(), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}
