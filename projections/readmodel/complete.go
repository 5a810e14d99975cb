package readmodel

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hubcloud/projections"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/status"
)

// completeOnly rejects queries until the first build of the read models is complete: before, lists
// would lack items.
type completeOnly struct {
	pool     *pgxpool.Pool
	complete <-chan struct{}
}

func (c *completeOnly) isComplete() bool {
	select {
	case <-c.complete:
		return true
	default:
		return false
	}
}

func (c *completeOnly) Exec(
	ctx context.Context, sql string, args ...any,
) (pgconn.CommandTag, error) {
	if !c.isComplete() {
		return pgconn.CommandTag{}, projections.ErrBuilding
	}
	return c.pool.Exec(ctx, sql, args...)
}

func (c *completeOnly) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if !c.isComplete() {
		return nil, projections.ErrBuilding
	}
	return c.pool.Query(ctx, sql, args...)
}

func (c *completeOnly) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if !c.isComplete() {
		return buildingRow{}
	}
	return c.pool.QueryRow(ctx, sql, args...)
}

// buildingRow is the row of a rejected query.
type buildingRow struct{}

func (buildingRow) Scan(...any) error { return projections.ErrBuilding }

// Complete returns a channel that is closed once the first build of the read models is complete.
// Until then queries fail with projections.ErrBuilding.
func (s *Store) Complete() <-chan struct{} { return s.complete }

// checkComplete closes s.complete if the first build of the read models is complete.
func (s *Store) checkComplete(ctx context.Context, queries *query.Queries) error {
	select {
	case <-s.complete:
		return nil
	default:
	}
	complete, err := status.IsComplete(ctx, queries, s.schema)
	if complete {
		s.completeOnce.Do(func() { close(s.complete) })
	}
	return err
}
