package statemodel

import (
	"context"

	"github.com/jackc/pgx/v5"
)

const reachedQuery = "SELECT commit_time FROM {schema}.checkpoints ORDER BY journal"

// Reached returns for each journal the time of the last record that the states have, in nanoseconds
// since 1970; 0 if they have none.
func Reached(ctx context.Context, db interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}) ([]int64, error) {
	rows, err := db.Query(ctx, SQL(reachedQuery))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}
