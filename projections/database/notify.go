package database

import (
	"context"

	"hubcloud/projections/internal/query"
)

// NotifyListeners makes every store that listens on a schema read its checkpoints and the stops
// again. The payload can be any text that is not a sequence: those announce commits.
func NotifyListeners(ctx context.Context, db query.DBTX, schema string) error {
	_, err := db.Exec(ctx, "SELECT pg_notify($1, 'look')", schema)
	return err
}
