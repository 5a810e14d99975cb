package statemodel

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Queries is a connection, a pool or a transaction.
type Queries interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Built reports whether the states have caught up with every journal once since the tables were
// made.
func Built(ctx context.Context, db interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}) (built bool, err error) {
	err = db.QueryRow(ctx, SQL(builtQuery)).Scan(&built)
	return built, err
}

// Positions are the last commits that tables have, by journal; 0 for none.
type Positions struct {
	At []uint64
	// Built reports whether the tables have been up with all journals since they were made.
	Built bool
}

// Sum returns the number of commits that were stored in the journals up to the positions.
func (p Positions) Sum() (sum uint64) {
	for _, at := range p.At {
		sum += at
	}
	return sum
}

// Reached reports whether the positions are at others or after them, in each journal.
func (p Positions) Reached(others []uint64) bool {
	for journal, at := range others {
		if p.At[journal] < at {
			return false
		}
	}
	return true
}

// ReadPositions returns the positions of the tables in a schema, for so many journals.
func ReadPositions(
	ctx context.Context, db Queries, schema string, journals int,
) (p Positions, err error) {
	p = Positions{At: make([]uint64, journals), Built: true}
	rows, err := db.Query(ctx, In(schema, positionsQuery), journals)
	if err != nil {
		return p, fmt.Errorf("positions of last reported states: %w", err)
	}
	var (
		journal  int
		position int64
		built    bool
	)
	_, err = pgx.ForEachRow(rows, []any{&journal, &position, &built}, func() error {
		p.At[journal], p.Built = uint64(position), p.Built && built
		return nil
	})
	if err != nil {
		return p, fmt.Errorf("positions of last reported states: %w", err)
	}
	return p, nil
}
