package rebuild

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/statemodel"
	"hubcloud/projections/tables"
)

// VerifyStates is Verify of the last reported states: it builds them from the journals, and compares
// those in use with them as of the same commits. Rows that no organization can see, of hubs that were
// released or reset, are left out: they are deleted some time later.
func (b *Builder) VerifyStates(
	ctx context.Context, found func(projection string, d Difference) error,
) (result Verified, err error) {
	states, err := b.ofStates(ctx)
	if err != nil {
		return result, err
	}
	err = states.verify(ctx, func(ctx context.Context, build *build) (err error) {
		v := statesVerification{build: build, found: found}
		v.result.Name = projections.Devices
		err = v.run(ctx)
		result = v.result
		return err
	})
	return result, err
}

// statesVerification is a comparison of last reported states under way.
type statesVerification struct {
	build  *build
	found  func(projection string, d Difference) error
	result Verified
}

func (v *statesVerification) run(ctx context.Context) error {
	b := v.build
	target, err := b.newCopy(ctx)
	if err != nil {
		return err
	}
	// Build first: an open transaction blocks vacuum.
	b.connMu.Lock()
	begin, err := b.statePositions(ctx, b.conn, b.cfg.Schema)
	b.connMu.Unlock()
	if err != nil {
		return err
	}
	if err := v.reach(ctx, target, begin); err != nil {
		return err
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return database.WithConn(ctx, b.cfg.ConnConfig, func(conn *pgx.Conn) error {
		return pgx.BeginTxFunc(ctx, conn, options, func(live pgx.Tx) error {
			const allowSilence = "SET LOCAL idle_in_transaction_session_timeout = '5min'"
			if _, err := live.Exec(ctx, allowSilence); err != nil {
				return err
			}
			at, err := b.statePositions(ctx, live, b.cfg.Schema)
			if err != nil {
				return err
			}
			if err := v.reach(ctx, target, at); err != nil {
				return err
			}
			b.phase.Store(PhaseCompare)
			v.result.Sequence = at.Sum()
			return v.compare(ctx, live)
		})
	})
}

// reach brings the target exactly to positions of the states in use.
func (v *statesVerification) reach(
	ctx context.Context, target *statemodel.Copy, at statemodel.Positions,
) error {
	head, err := v.build.journalsHead(ctx, at.At)
	if err != nil {
		return err
	}
	v.build.head.Store(head)
	if err := target.Reach(ctx, at.At); err != nil {
		return err
	}
	v.build.journalsAt.Advance(at.Sum())
	return nil
}

// compare compares all tables, as a transaction sees those in use.
func (v *statesVerification) compare(ctx context.Context, live pgx.Tx) error {
	hubs, err := readLogEpochs(ctx, live)
	if err != nil {
		return err
	}
	return database.WithConn(ctx, v.build.cfg.ConnConfig, func(conn *pgx.Conn) error {
		for _, t := range stateTables {
			c := comparison{
				live:    selection{live, selectVisible(t, v.build.cfg.Schema), hubs.args()},
				rebuilt: selection{conn, selectVisible(t, v.build.target), hubs.args()},
				table:   t,
			}
			rows, err := c.run(ctx, func(d Difference) error {
				v.result.Differences++
				return v.found(projections.Devices, d)
			})
			v.result.Rows += rows
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// logEpochs are the hubs of all organizations with the epochs of their logs.
type logEpochs struct{ ids, epochs, former []string }

func readLogEpochs(ctx context.Context, db queryer) (all logEpochs, err error) {
	rows, err := db.Query(ctx, "SELECT id, epoch, log_former FROM hubs")
	if err != nil {
		return all, fmt.Errorf("read the epochs of hub logs: %w", err)
	}
	var id, epoch, former string
	_, err = pgx.ForEachRow(rows, []any{&id, &epoch, &former}, func() error {
		all.ids, all.epochs = append(all.ids, id), append(all.epochs, epoch)
		all.former = append(all.former, former)
		return nil
	})
	return all, err
}

func (l logEpochs) args() []any { return []any{l.ids, l.epochs, l.former} }

// stateTables are the tables that are compared.
var stateTables = []table{
	newStateTable("hubs", 1, "hub_id", "journal", "epoch", "seq", "event_seq", "at", "since",
		"doubt", "doubt_number", "read_after", "read_number", "was_read", "forgotten", "certain"),
	newStateTable("devices", 2, "hub_id", "device_id", "name", "manufacturer", "model", "available",
		"available_since", "available_logged", "doubt", "doubt_number", "read_after", "read_number",
		"was_read", "named_seq", "named_number", "reached_seq", "reached_number", "event_seq",
		"event_number", "seq", "certain"),
	newStateTable("channels", 4, "hub_id", "device_id", "key", "endpoint", "was_read", "kind",
		"unit", "readable", "writable", "capabilities", "available", "value", "standing",
		"observed_at", "changed_at", "desired", "desired_at", "status", "unsure", "basis", "observed_logged",
		"changed_logged", "desired_logged", "seq", "event_seq", "event_number"),
}

// newStateTable returns a table whose first columns are its key. Those named device_id and endpoint
// are numbers.
func newStateTable(name string, keys int, columns ...string) table {
	t := table{name: name, keys: keys}
	for _, column := range columns {
		typ := "text"
		if column == "device_id" || column == "endpoint" {
			typ = "bigint"
		}
		t.columns = append(t.columns, tables.Column{Name: column, Type: typ})
	}
	return t
}

// selectVisible returns the query for the rows of a table in a schema that organizations can see.
// Its arguments are those of logEpochs.
func selectVisible(t table, schemaName string) string {
	var columns, keys []string
	for i, c := range t.columns {
		if i < t.keys {
			keys = append(keys, "t."+c.Name)
		}
		columns = append(columns, "(t."+c.Name+")::text")
	}
	sql := "SELECT " + strings.Join(columns, ", ") + " FROM {schema}." + t.name + " t " +
		"JOIN {schema}.hubs state ON state.hub_id = t.hub_id " +
		"JOIN unnest($1::text[], $2::text[], $3::text[]) AS hub (id, epoch, former) " +
		"ON hub.id = t.hub_id AND (state.epoch = hub.epoch OR " +
		"position(state.epoch || ':' IN hub.former) > 0) ORDER BY " + strings.Join(keys, ", ")
	return statemodel.In(schemaName, sql)
}
