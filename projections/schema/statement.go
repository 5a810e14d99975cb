package schema

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ErrNoRow means that a statement was to change rows that do not exist.
var ErrNoRow = errors.New("there is no such row to change")

// AnyRows is the number of rows of a statement that may change any number of rows.
const AnyRows = -1

// Statement changes many rows at once.
type Statement struct {
	// What names the statement in errors.
	What string
	SQL  string
	// Rows is how many rows the statement must change, or AnyRows.
	Rows int
	// Args returns the arguments, mostly an array for each column; nil means none.
	Args func() []any

	// copy inserts the rows with COPY; nil if the statement does not insert rows.
	copy func(ctx context.Context, conn *pgx.Conn) error
	// upserts means that SQL also replaces existing rows, which copy cannot do.
	upserts bool
}

// Queue adds the statement to a batch. The batch fails with ErrNoRow if the statement changes
// another number of rows than Rows.
func (s Statement) Queue(batch *pgx.Batch) {
	var args []any
	if s.Args != nil {
		args = s.Args()
	}
	batch.Queue(s.SQL, args...).Query(func(rows pgx.Rows) error {
		rows.Close()
		if err := rows.Err(); err != nil {
			return fmt.Errorf("%s: %w", s.What, err)
		}
		changed := rows.CommandTag().RowsAffected()
		if s.Rows != AnyRows && changed != int64(s.Rows) {
			return fmt.Errorf("%s: %w: found %d of %d", s.What, ErrNoRow, changed, s.Rows)
		}
		return nil
	})
}

// Load runs the statement, with COPY if possible. emptyTables means that no row of the statement
// exists.
func (s Statement) Load(ctx context.Context, conn *pgx.Conn, emptyTables bool) error {
	if s.copy != nil && (emptyTables || !s.upserts) {
		return s.copy(ctx, conn)
	}
	batch := &pgx.Batch{}
	s.Queue(batch)
	return conn.SendBatch(ctx, batch).Close()
}
