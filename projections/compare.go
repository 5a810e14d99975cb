package projections

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// What differs between the read models in use and those that the streams give.
const (
	// DifferenceChanged is a column of a row.
	DifferenceChanged = "changed"
	// DifferenceMissing is a row that those in use do not have.
	DifferenceMissing = "missing"
	// DifferenceExtra is a row that only those in use have.
	DifferenceExtra = "extra"
)

// Difference is one difference, in the tables of the read models.
type Difference struct {
	Table string
	// Key are the columns of the table's primary key and what they are in the row, one after the
	// other.
	Key []KeyColumn
	// What is one of the Difference… constants.
	What string
	// Column is the column that differs, Live what it is in the read models in use, Rebuilt what it
	// should be: as text, nil for NULL. All of them are empty when a row is missing or extra.
	Column        string
	Live, Rebuilt *string
}

// KeyColumn is a column of a row's primary key.
type KeyColumn struct{ Name, Value string }

// table is a table that is compared, with its columns in the order in which they are read: those of
// the key first.
type table struct {
	name    string
	columns []tableColumn
	keys    int
}

type tableColumn struct {
	name   string
	number bool
}

//go:embed sql/columns.sql
var columnsOf string

// tablesOf gives the tables of a schema, but for the checkpoints.
func tablesOf(ctx context.Context, conn *pgx.Conn, schema string) ([]table, error) {
	type column struct {
		table string
		tableColumn
		place *int
	}
	rows, err := conn.Query(ctx, columnsOf, schema)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		err = row.Scan(&c.table, &c.name, &c.number, &c.place)
		return c, err
	})
	if err != nil {
		return nil, err
	}
	var tables []table
	for len(all) > 0 {
		t := table{name: all[0].table}
		n := slices.IndexFunc(all, func(c column) bool { return c.table != t.name })
		if n < 0 {
			n = len(all)
		}
		columns := all[:n]
		all = all[n:]
		slices.SortStableFunc(columns, func(a, b column) int {
			switch {
			case a.place != nil && b.place != nil:
				return cmp.Compare(*a.place, *b.place)
			case a.place != nil:
				return -1
			case b.place != nil:
				return 1
			}
			return 0
		})
		for _, c := range columns {
			t.columns = append(t.columns, c.tableColumn)
			if c.place != nil {
				t.keys++
			}
		}
		if t.name != "checkpoints" {
			tables = append(tables, t)
		}
	}
	return tables, nil
}

// read gives a query for all rows of the table, in the order of its key. Texts in keys are ordered
// by their bytes.
func (t table) read(where string) string {
	var columns, keys []string
	for i, c := range t.columns {
		name := pgx.Identifier{c.name}.Sanitize()
		columns = append(columns, name+"::text")
		if i < t.keys {
			keys = append(keys, name)
		}
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM " + pgx.Identifier{
		t.name,
	}.Sanitize() + where + " ORDER BY " + strings.Join(keys, ", ")
}

// compareKeys compares two rows by the table's key.
func (t table) compareKeys(a, b [][]byte) int {
	for i := range t.keys {
		var order int
		if t.columns[i].number {
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

// compareTable reads a table from both sides, row by row, and tells of every difference. rows is
// how many it compared. where chooses rows.
func compareTable(
	ctx context.Context, t table, live, rebuilt queryer, where string, args []any,
	found func(Difference) error,
) (rows int, err error) {
	if t.keys == 0 {
		return 0, fmt.Errorf("the table %s has no primary key to compare it by", t.name)
	}
	left, err := openSide(ctx, live, t.read(where), args)
	if err != nil {
		return 0, fmt.Errorf("read %s in use: %w", t.name, err)
	}
	defer left.rows.Close()
	right, err := openSide(ctx, rebuilt, t.read(where), args)
	if err != nil {
		return 0, fmt.Errorf("read %s rebuilt: %w", t.name, err)
	}
	defer right.rows.Close()
	for left.row != nil || right.row != nil {
		rows++
		order := 0
		switch {
		case left.row == nil:
			order = 1
		case right.row == nil:
			order = -1
		default:
			order = t.compareKeys(left.row, right.row)
		}
		switch {
		case order < 0:
			err = found(Difference{Table: t.name, Key: t.keyOf(left.row), What: DifferenceExtra})
		case order > 0:
			err = found(Difference{Table: t.name, Key: t.keyOf(right.row), What: DifferenceMissing})
		default:
			err = t.compareColumns(left.row, right.row, found)
		}
		if err != nil {
			return rows, err
		}
		if order <= 0 {
			left.next()
		}
		if order >= 0 {
			right.next()
		}
	}
	if err := left.rows.Err(); err != nil {
		return rows, fmt.Errorf("read %s in use: %w", t.name, err)
	}
	if err := right.rows.Err(); err != nil {
		return rows, fmt.Errorf("read %s rebuilt: %w", t.name, err)
	}
	return rows, nil
}

func (t table) compareColumns(live, rebuilt [][]byte, found func(Difference) error) error {
	for i, column := range t.columns {
		if (live[i] == nil) == (rebuilt[i] == nil) && bytes.Equal(live[i], rebuilt[i]) {
			continue
		}
		err := found(Difference{
			Table: t.name, Key: t.keyOf(live), What: DifferenceChanged, Column: column.name,
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
		key[i] = KeyColumn{t.columns[i].name, string(row[i])}
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

// side is one side of a comparison: its row is good until the next.
type side struct {
	rows pgx.Rows
	row  [][]byte
}

func openSide(ctx context.Context, from queryer, sql string, args []any) (*side, error) {
	rows, err := from.Query(ctx, sql, args...)
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
