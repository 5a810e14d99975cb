package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Table is a table with rows of type R.
type Table[R any] struct {
	Definition
	// inserted are the columns that new rows set.
	inserted []column[R]
	// insert is the SQL of Insert. It has one array for each inserted column.
	insert string
	// upserts means that insert replaces rows that exist.
	upserts bool
}

// column is a column that new rows set.
type column[R any] struct {
	Column
	// parameter is the type of the elements in Insert's array. expression is the SQL that converts
	// an element to the column's type.
	parameter, expression string
	// value returns the column of one row, for Copy.
	value func(*R) any
	// array returns the column of all rows, for Insert.
	array func([]R) any
}

func columnOf[R, V any](name, kind string, value func(*R) V) column[R] {
	return column[R]{
		Column: Column{Name: name, Type: kind}, parameter: kind, expression: name,
		value: func(row *R) any { return value(row) },
		array: func(rows []R) any { return collect(rows, value) },
	}
}

func collect[R, V any](rows []R, value func(*R) V) []V {
	values := make([]V, len(rows))
	for i := range rows {
		values[i] = value(&rows[i])
	}
	return values
}

func text[R any](name string, value func(*R) string) column[R] {
	return columnOf(name, "text", value)
}

func nullableText[R any](name string, value func(*R) *string) column[R] {
	return columnOf(name, "text", value)
}

func bigint[R any](name string, value func(*R) int64) column[R] {
	return columnOf(name, "bigint", value)
}

func number[R any](name string, value func(*R) uint64) column[R] {
	return bigint(name, func(row *R) int64 { return int64(value(row)) })
}

// nanoseconds is a column with the nanoseconds since 1970 of a time; 0 for none.
func nanoseconds[R any](name string, value func(*R) time.Time) column[R] {
	return bigint(name, func(row *R) int64 {
		if at := value(row); !at.IsZero() {
			return at.UnixNano()
		}
		return 0
	})
}

// nullableTime is a column that is NULL for the zero time.
func nullableTime[R any](name string, value func(*R) time.Time) column[R] {
	return columnOf(name, "timestamp with time zone", func(row *R) *time.Time {
		if at := value(row); !at.IsZero() {
			return &at
		}
		return nil
	})
}

// nullableJSON is a column with JSON as text, because PostgreSQL's JSON types reject some of what
// JSON allows; NULL for nil.
func nullableJSON[R any](name string, value func(*R) []byte) column[R] {
	return nullableText(name, func(row *R) *string {
		if raw := value(row); raw != nil {
			text := string(raw)
			return &text
		}
		return nil
	})
}

func boolean[R any](name string, value func(*R) bool) column[R] {
	return columnOf(name, "boolean", value)
}

func timestamp[R any](name string, value func(*R) time.Time) column[R] {
	return columnOf(name, "timestamp with time zone", value)
}

func bytea[R any](name string, value func(*R) []byte) column[R] {
	return columnOf(name, "bytea", value)
}

// words is a column of type text[] whose elements have no spaces. Insert passes the elements of a
// row as one text, because unnest would flatten an array of arrays.
func words[R any](name string, value func(*R) []string) column[R] {
	c := columnOf(name, "text[]", value)
	c.parameter, c.expression = "text", "string_to_array("+name+", ' ')"
	c.array = func(rows []R) any {
		return collect(rows, func(row *R) string { return strings.Join(value(row), " ") })
	}
	return c
}

// newTable returns a table. New rows set the inserted columns; the later columns have their
// defaults until another statement sets them.
func newTable[R any](d Definition, inserted []column[R], later ...Column) *Table[R] {
	var names, parameters, expressions []string
	for i, c := range inserted {
		d.Columns = append(d.Columns, c.Column)
		names = append(names, c.Name)
		parameters = append(parameters, fmt.Sprintf("$%d::%s[]", i+1, c.parameter))
		expressions = append(expressions, c.expression)
	}
	d.Columns = append(d.Columns, later...)
	columns := strings.Join(names, ", ")
	return &Table[R]{Definition: d, inserted: inserted, insert: "INSERT INTO " + d.Name + " (" +
		columns + ") SELECT " + strings.Join(expressions, ", ") + " FROM unnest(" +
		strings.Join(parameters, ", ") + ") AS new (" + columns + ")"}
}

// upserting makes Insert set all columns of a row whose key exists.
func (t *Table[R]) upserting() *Table[R] {
	var replaced []string
	for _, c := range t.inserted {
		if !slices.Contains(t.Key, c.Name) {
			replaced = append(replaced, c.Name+" = excluded."+c.Name)
		}
	}
	t.upserts = true
	t.insert += " ON CONFLICT (" + strings.Join(t.Key, ", ") + ") DO UPDATE SET " +
		strings.Join(replaced, ", ")
	return t
}

// Insert returns the statement that inserts rows.
func (t *Table[R]) Insert(rows []R) Statement {
	return Statement{
		What: "insert into " + t.Name,
		SQL:  t.insert,
		Rows: len(rows),
		Args: func() []any {
			args := make([]any, len(t.inserted))
			for i, c := range t.inserted {
				args[i] = c.array(rows)
			}
			return args
		},
		copy:    func(ctx context.Context, conn *pgx.Conn) error { return t.Copy(ctx, conn, rows) },
		upserts: t.upserts,
	}
}

// Copy inserts rows with COPY, which is faster than Insert but fails if the key of a row exists.
func (t *Table[R]) Copy(ctx context.Context, conn *pgx.Conn, rows []R) error {
	names := make([]string, len(t.inserted))
	for i, c := range t.inserted {
		names[i] = c.Name
	}
	source := &copySource[R]{columns: t.inserted, rows: rows, values: make([]any, len(names))}
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{t.Name}, names, source); err != nil {
		return fmt.Errorf("insert into %s: %w", t.Name, err)
	}
	return nil
}

// copySource implements pgx.CopyFromSource.
type copySource[R any] struct {
	columns []column[R]
	rows    []R
	values  []any
	next    int
}

func (c *copySource[R]) Next() bool { return c.next < len(c.rows) }

// Values returns the next row. The slice is valid until the next call.
func (c *copySource[R]) Values() ([]any, error) {
	row := &c.rows[c.next]
	c.next++
	for i := range c.columns {
		c.values[i] = c.columns[i].value(row)
	}
	return c.values, nil
}

func (c *copySource[R]) Err() error { return nil }
