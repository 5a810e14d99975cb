package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

// snapshot is what the read models know of keys and hubs, all at one sequence of the directory.
type snapshot struct {
	sequence uint64
	eventID  string
	keys     []query.KeysInForceRow
	hubs     []query.HubLogsRow
}

// snapshot reads all of it in one transaction that sees one state of the database.
func (s *Store) snapshot(ctx context.Context) (snapshot, error) {
	var taken snapshot
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		queries := query.New(tx)
		at, err := queries.Checkpoint(ctx, DirectoryProjection)
		if err != nil {
			return err
		}
		taken.sequence, taken.eventID = uint64(at.Sequence), at.EventID
		if taken.keys, err = queries.KeysInForce(ctx); err != nil {
			return err
		}
		taken.hubs, err = queries.HubLogs(ctx)
		return err
	})
	if err != nil {
		return snapshot{}, fmt.Errorf("read models: keys and hubs: %w", err)
	}
	return taken, nil
}
