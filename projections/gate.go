package projections

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hubcloud/projections/internal/query"
)

// gate lets queries through once the read models have been complete: before that, what is there
// would be taken for all there is.
type gate struct {
	pool     *pgxpool.Pool
	complete <-chan struct{}
}

func (g *gate) open() bool {
	select {
	case <-g.complete:
		return true
	default:
		return false
	}
}

func (g *gate) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if !g.open() {
		return pgconn.CommandTag{}, ErrBuilding
	}
	return g.pool.Exec(ctx, sql, args...)
}

func (g *gate) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !g.open() {
		return nil, ErrBuilding
	}
	return g.pool.Query(ctx, sql, args...)
}

func (g *gate) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if !g.open() {
		return closedRow{}
	}
	return g.pool.QueryRow(ctx, sql, args...)
}

// closedRow is the row of a query that was not let through.
type closedRow struct{}

func (closedRow) Scan(...any) error { return ErrBuilding }

// lookComplete opens the gate once the schema is live.
func (s *Store) lookComplete(ctx context.Context, queries *query.Queries) error {
	select {
	case <-s.complete:
		return nil
	default:
	}
	state, err := queries.SchemaState(ctx, s.schema)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err == nil && state == schemaLive {
		s.completeOnce.Do(func() { close(s.complete) })
	}
	return err
}

// Complete is closed once the read models have been complete: until then queries fail with
// ErrBuilding.
func (s *Store) Complete() <-chan struct{} { return s.complete }
