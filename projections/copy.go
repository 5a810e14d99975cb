package projections

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// insertion reads the table and the columns that a statement inserts into.
var insertion = regexp.MustCompile(`(?m)^INSERT INTO (\w+) \(([^)]*)\)`)

// copyInto writes the rows of a statement that does nothing but insert them, all at once. It says
// false for any other.
func (s statement) copyInto(ctx context.Context, conn *pgx.Conn) (copied bool, err error) {
	into := insertion.FindStringSubmatch(s.sql)
	if into == nil {
		return false, nil
	}
	source := &columns{values: s.args, row: make([]any, len(s.args)), next: -1, count: s.rows}
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{
		into[1],
	}, strings.Split(into[2], ", "), source); err != nil {
		return true, fmt.Errorf("%s: %w", s.what, err)
	}
	return true, nil
}

// columns gives rows out of one slice a column, for a COPY.
type columns struct {
	values []any
	row    []any
	next   int
	count  int
}

func (c *columns) Next() bool {
	c.next++
	return c.next < c.count
}

// Values gives the row. It is good until the next.
func (c *columns) Values() ([]any, error) {
	for i, column := range c.values {
		switch column := column.(type) {
		case []string:
			c.row[i] = column[c.next]
		case []*string:
			c.row[i] = column[c.next]
		case []int64:
			c.row[i] = column[c.next]
		case []bool:
			c.row[i] = column[c.next]
		case []time.Time:
			c.row[i] = column[c.next]
		case [][]byte:
			c.row[i] = column[c.next]
		case []words:
			c.row[i] = strings.Fields(string(column[c.next]))
		default:
			return nil, fmt.Errorf("a column of %T cannot be copied", column)
		}
	}
	return c.row, nil
}

func (c *columns) Err() error { return nil }
