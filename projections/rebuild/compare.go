package rebuild

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// The kinds of differences between the read models in use and rebuilt ones.
const (
	// DifferenceChanged is a column of a row with another value.
	DifferenceChanged = "changed"
	// DifferenceMissing is a row that is missing in the read models in use.
	DifferenceMissing = "missing"
	// DifferenceExtra is a row that only the read models in use have.
	DifferenceExtra = "extra"
)

// Difference is one difference between the read models in use and rebuilt ones.
type Difference struct {
	Table string
	// Key identifies the row by the columns of the primary key.
	Key []KeyColumn
	// What is one of the Difference constants.
	What string
	// Column is the column that differs. Live is its value in the read models in use and Rebuilt
	// its value in the rebuilt ones, as text; nil for NULL. All three are zero for a missing or
	// extra row.
	Column        string
	Live, Rebuilt *string
}

// KeyColumn is the value of a column of a row's primary key.
type KeyColumn struct{ Name, Value string }

// table is a table that is compared. Its columns begin with the columns of the key, in the order of
// the key.
type table struct {
	name    string
	columns []schema.Column
	keys    int
}

func comparedTable(d schema.Definition) table {
	return table{name: d.Name, columns: d.KeyFirst(), keys: len(d.Key)}
}

// selectAll returns the query for the rows that match where, ordered by the key. Texts in keys are
// ordered by their bytes.
func (t table) selectAll(where string) string {
	var columns, keys []string
	for i, c := range t.columns {
		columns = append(columns, pgx.Identifier{c.Name}.Sanitize()+"::text")
		if i < t.keys {
			keys = append(keys, pgx.Identifier{c.Name}.Sanitize())
		}
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + pgx.Identifier{t.name}.Sanitize() +
		where + " ORDER BY " + strings.Join(keys, ", ")
}

// compareKeys compares two rows by the table's key.
func (t table) compareKeys(a, b [][]byte) int {
	for i := range t.keys {
		var order int
		if t.columns[i].Type == "bigint" {
			order = compareNumbers(a[i], b[i])
		} else {
			order = bytes.Compare(a[i], b[i])
		}
		if order != 0 {
			return order
		}
	}
	return 0
}

// compareNumbers compares whole numbers as PostgreSQL writes them.
func compareNumbers(a, b []byte) int {
	minusA, minusB := len(a) > 0 && a[0] == '-', len(b) > 0 && b[0] == '-'
	switch {
	case minusA && minusB:
		return compareNumbers(b[1:], a[1:])
	case minusA:
		return -1
	case minusB:
		return 1
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
}

// queryer is a connection or a transaction.
type queryer interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// selection is a query of rows, with the table's columns as text and in the order of the key.
type selection struct {
	from queryer
	sql  string
	args []any
}

// comparison compares the rows of a table in the read models in use with the rebuilt ones.
type comparison struct {
	live, rebuilt selection
	table         table
}

// run reads both sides in the order of the key, calls found with every difference, and returns how
// many rows it compared.
func (c comparison) run(ctx context.Context, found func(Difference) error) (rows int, err error) {
	live, err := c.open(ctx, c.live)
	if err != nil {
		return 0, fmt.Errorf("read %s in use: %w", c.table.name, err)
	}
	defer live.rows.Close()
	rebuilt, err := c.open(ctx, c.rebuilt)
	if err != nil {
		return 0, fmt.Errorf("read %s rebuilt: %w", c.table.name, err)
	}
	defer rebuilt.rows.Close()
	for live.row != nil || rebuilt.row != nil {
		rows++
		order := c.order(live.row, rebuilt.row)
		if err := c.compareRows(order, live.row, rebuilt.row, found); err != nil {
			return rows, err
		}
		if order <= 0 {
			live.next()
		}
		if order >= 0 {
			rebuilt.next()
		}
	}
	if err := live.rows.Err(); err != nil {
		return rows, fmt.Errorf("read %s in use: %w", c.table.name, err)
	}
	if err := rebuilt.rows.Err(); err != nil {
		return rows, fmt.Errorf("read %s rebuilt: %w", c.table.name, err)
	}
	return rows, nil
}

// order compares two rows by the key. The nil row after the last one comes after all others.
func (c comparison) order(live, rebuilt [][]byte) int {
	switch {
	case live == nil:
		return 1
	case rebuilt == nil:
		return -1
	}
	return c.table.compareKeys(live, rebuilt)
}

// compareRows reports the differences of two rows with the same key (order 0), or the row that only
// one side has.
func (c comparison) compareRows(
	order int, live, rebuilt [][]byte, found func(Difference) error,
) error {
	t := c.table
	switch {
	case order < 0:
		return found(Difference{Table: t.name, Key: t.keyOf(live), What: DifferenceExtra})
	case order > 0:
		return found(Difference{Table: t.name, Key: t.keyOf(rebuilt), What: DifferenceMissing})
	default:
		return t.compareColumns(live, rebuilt, found)
	}
}

func (t table) compareColumns(live, rebuilt [][]byte, found func(Difference) error) error {
	for i, column := range t.columns {
		if (live[i] == nil) == (rebuilt[i] == nil) && bytes.Equal(live[i], rebuilt[i]) {
			continue
		}
		err := found(Difference{
			Table: t.name, Key: t.keyOf(live), What: DifferenceChanged, Column: column.Name,
			Live: textOrNull(live[i]), Rebuilt: textOrNull(rebuilt[i]),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (t table) keyOf(row [][]byte) []KeyColumn {
	key := make([]KeyColumn, t.keys)
	for i := range key {
		key[i] = KeyColumn{t.columns[i].Name, string(row[i])}
	}
	return key
}

func textOrNull(value []byte) *string {
	if value == nil {
		return nil
	}
	text := string(value)
	return &text
}

// side is one side of a comparison. row is valid until next; nil after the last row.
type side struct {
	rows pgx.Rows
	row  [][]byte
}

func (c comparison) open(ctx context.Context, from selection) (*side, error) {
	rows, err := from.from.Query(ctx, from.sql, from.args...)
	if err != nil {
		return nil, err
	}
	s := &side{rows: rows}
	s.next()
	if s.row == nil && rows.Err() != nil {
		return nil, rows.Err()
	}
	return s, nil
}

func (s *side) next() {
	if s.row = nil; s.rows.Next() {
		s.row = s.rows.RawValues()
	}
}
