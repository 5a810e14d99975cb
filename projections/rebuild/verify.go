package rebuild

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/projector"
	"hubcloud/projections/schema"
)

// Verified is the result of comparing the tables of one projection.
type Verified struct {
	// Name is one of schema.Names.
	Name string
	// Sequence is the sequence of the last event that the compared read models have; for
	// schema.Devices, the number of commits in the journals up to there.
	Sequence uint64
	// Rows is how many rows were compared, Differences how many differences were found.
	Rows, Differences int
	// Moving is how many hubs could not be compared: for schema.Presence, because the bucket had a
	// newer value of them in every round, and for schema.Devices, because they were ahead of others
	// that waited to be written, or their organization has as many channels as are kept.
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
	// moving are the hubs that must be compared again: see compare.
	moving []string
	// results are in the order of schema.Names.
	results []Verified
}

func (v *verification) run(ctx context.Context) ([]Verified, error) {
	for _, name := range schema.Names() {
		v.results = append(v.results, Verified{Name: name})
	}
	b := v.build
	// Build first: an open transaction blocks vacuum.
	var begin positions
	err := v.atOneMoment(ctx, func(_ context.Context, _ pgx.Tx, at positions) error {
		begin = at
		return nil
	})
	if err == nil {
		err = b.loadOrApply(ctx, begin.of(b.directory()))
	}
	if err == nil {
		err = b.reach(ctx, begin, b.copies...)
	}
	if err == nil {
		err = v.atOneMoment(ctx, v.compareAll)
	}
	for round := 0; err == nil && len(v.moving) > 0 && round < presenceRounds; round++ {
		schema.Pause(ctx, presencePause)
		err = v.atOneMoment(ctx, func(ctx context.Context, live pgx.Tx, at positions) error {
			if err := b.reach(ctx, at, b.copies[1]); err != nil {
				return err
			}
			hubs := v.moving
			v.moving = nil
			_, err := v.compareTable(
				ctx, live, at, schema.HubPresence.Definition, " WHERE hub_id = ANY ($1::text[])", hubs,
			)
			return err
		})
	}
	v.results[1].Moving = len(v.moving)
	return v.results, err
}

// compareAll compares all tables as of one moment.
func (v *verification) compareAll(ctx context.Context, live pgx.Tx, at positions) error {
	b := v.build
	if err := b.reach(ctx, at, b.copies...); err != nil {
		return err
	}
	b.phase.Store(PhaseCompare)
	for _, c := range b.copies {
		v.resultOf(schema.ProjectionOf(c.Name())).Sequence += at.of(c)
	}
	ahead, err := v.aheadOf(ctx, live, at)
	if err != nil {
		return err
	}
	v.resultOf(schema.Devices).Moving = len(ahead)
	for _, table := range schema.Tables() {
		var rows int
		if table.Projection == schema.Devices {
			rows, err = v.compareTable(ctx, live, at, table, visible, ahead)
		} else {
			rows, err = v.compareTable(ctx, live, at, table, "")
		}
		if err != nil {
			return err
		}
		v.resultOf(table.Projection).Rows += rows
	}
	return nil
}

// aheadOf returns the hubs whose last reported states have more than the checkpoints, and the ones
// with channels that were left out: which ones depends on the order between hubs.
func (v *verification) aheadOf(
	ctx context.Context, live pgx.Tx, at positions,
) (hubs []string, err error) {
	const query = "SELECT hub_id FROM reported_hubs WHERE 'devices/' || journal = $1 " +
		"AND (at > $2 OR omitted > 0 OR hub_id IN (SELECT hub.id FROM hubs hub WHERE org_id IN (" +
		"SELECT org_id FROM hubs JOIN reported_hubs ON id = hub_id GROUP BY org_id " +
		"HAVING sum(channels) >= $3)))"
	for _, c := range v.build.copies {
		if schema.ProjectionOf(c.Name()) != schema.Devices {
			continue
		}
		reached := time.Unix(0, schema.CommitTime(at[c.Name()].EventID))
		rows, err := live.Query(ctx, query, c.Name(), reached, projector.MaxOrgChannels)
		if err != nil {
			return nil, err
		}
		some, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return nil, err
		}
		hubs = append(hubs, some...)
	}
	return hubs, nil
}

func (v *verification) resultOf(projection string) *Verified {
	return &v.results[slices.Index(schema.Names(), projection)]
}

// atOneMoment runs fn in a transaction that sees the read models in use between two batches. It
// fails with schema.ErrOtherStream if they are not of these streams.
func (v *verification) atOneMoment(
	ctx context.Context, fn func(ctx context.Context, live pgx.Tx, at positions) error,
) error {
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return schema.WithConn(ctx, v.build.cfg.ConnConfig, func(conn *pgx.Conn) error {
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
			at, err := v.momentOf(ctx, tx)
			if err != nil {
				return err
			}
			return fn(ctx, tx, at)
		})
	})
}

func (v *verification) momentOf(ctx context.Context, live pgx.Tx) (positions, error) {
	b := v.build
	at, err := readPositions(ctx, live)
	if err != nil {
		return nil, err
	}
	otherStream, err := isOfOtherStream(ctx, b.cfg.Directory, at[schema.Directory])
	if err != nil {
		return nil, err
	}
	if !otherStream {
		if err := b.readHeads(ctx, at); err != nil {
			return nil, err
		}
	}
	for _, c := range b.copies {
		otherStream = otherStream || at.of(c) > c.head.Load()
	}
	if otherStream {
		return nil, fmt.Errorf(
			"%w: build them again with `hubcloud projections rebuild`", schema.ErrOtherStream,
		)
	}
	return at, nil
}

// visible selects the last reported states that organizations can see, except of the hubs $1.
const visible = " WHERE NOT hub_id = ANY (coalesce($1::text[], '{}')) " +
	"AND hub_id IN (SELECT state.hub_id FROM reported_hubs state " +
	"JOIN hubs hub ON hub.id = state.hub_id AND (hub.epoch = state.epoch " +
	"OR position(state.epoch || ':' IN hub.log_former) > 0))"

// compareTable compares the rows of a table that match where, and returns their number. A hub whose
// presence differs while the bucket has a newer value than the read models is moving: its older
// value can no longer be read.
func (v *verification) compareTable(
	ctx context.Context, live pgx.Tx, at positions, d schema.Definition, where string, args ...any,
) (rows int, err error) {
	result := v.resultOf(d.Projection)
	err = v.build.withTarget(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		t := comparedTable(d)
		sql := t.selectAll(where)
		c := comparison{
			live: selection{live, sql, args}, rebuilt: selection{conn, sql, args}, table: t,
		}
		rows, err = c.run(ctx, func(d Difference) error {
			if result.Name == schema.Presence {
				moving, err := v.isMoving(ctx, d.Key[0].Value, uint64(at[schema.Presence].Sequence))
				if err != nil || moving {
					return err
				}
			}
			if result.Name == schema.Book && d.What == DifferenceExtra {
				// What was deleted meanwhile is in the read models for a moment.
				has, err := v.build.cfg.HasEntry(ctx, d.Key[0].Value)
				if err != nil || !has {
					return err
				}
			}
			result.Differences++
			return v.found(result.Name, d)
		})
		return err
	})
	return rows, err
}

// isMoving reports whether the bucket has a newer value of a hub than the read models, and adds
// such a hub to v.moving.
func (v *verification) isMoving(ctx context.Context, hub string, at uint64) (bool, error) {
	// Differences of one hub come one after the other.
	if n := len(v.moving); n > 0 && v.moving[n-1] == hub {
		return true, nil
	}
	presence := projector.PresenceSource{Bucket: v.build.cfg.Presence}
	revision, err := presence.HubRevision(ctx, hub)
	if err != nil || revision <= at {
		return false, err
	}
	v.moving = append(v.moving, hub)
	return true, nil
}
