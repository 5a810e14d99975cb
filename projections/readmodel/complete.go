package readmodel

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"hubcloud/projections/schema"
)

// completeOnly rejects queries until the first build of the read models is complete: before, lists
// would lack items.
type completeOnly struct {
	pool  *pgxpool.Pool
	store *Store
}

// whenComplete returns the connections for queries that only complete read models can answer.
func (s *Store) whenComplete() *completeOnly { return &completeOnly{s.pool, s} }

// incomplete returns nil if the read models are complete. Otherwise it returns errGone while the
// database was never reached, and schema.ErrBuilding after that.
func (c *completeOnly) incomplete() error {
	switch s := c.store; {
	case !isClosed(s.claimed):
		return errGone
	case !isClosed(s.complete), s.incomplete.Load():
		return schema.ErrBuilding
	}
	return nil
}

func (c *completeOnly) Exec(
	ctx context.Context, sql string, args ...any,
) (pgconn.CommandTag, error) {
	if err := c.incomplete(); err != nil {
		return pgconn.CommandTag{}, err
	}
	return c.pool.Exec(ctx, sql, args...)
}

func (c *completeOnly) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := c.incomplete(); err != nil {
		return nil, err
	}
	return c.pool.Query(ctx, sql, args...)
}

func (c *completeOnly) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if err := c.incomplete(); err != nil {
		return rejectedRow{err}
	}
	return c.pool.QueryRow(ctx, sql, args...)
}

// rejectedRow is the row of a rejected query.
type rejectedRow struct{ err error }

func (r rejectedRow) Scan(...any) error { return r.err }

// Complete returns a channel that is closed once the first build of the read models is complete.
// Until then queries fail with schema.ErrBuilding, or with another error while the database was
// never reached.
func (s *Store) Complete() <-chan struct{} { return s.complete }

// checkComplete reads whether the first build of the read models is complete.
func (s *Store) checkComplete(ctx context.Context, queries *schema.Queries) error {
	complete, err := schema.IsComplete(ctx, queries, s.schema)
	if err != nil {
		return err
	}
	s.incomplete.Store(!complete)
	if complete {
		s.completeOnce.Do(func() { close(s.complete) })
	}
	return nil
}
