package projections

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/internal/query"
)

// snapshot is what the read models know of keys, hubs and members, all at one sequence of the
// directory.
type snapshot struct {
	sequence uint64
	eventID  string
	keys     []query.KeysInForceRow
	hubs     []query.HubLogsRow
	orgs     []query.OrgNamesRow
	members  []query.AllMembersRow
}

// snapshot reads all of it in one transaction that sees one state of the database. It begins with
// the table that is locked while other read models take the place of these: so all of it is of the
// ones or of the others.
func (s *Store) snapshot(ctx context.Context) (snapshot, error) {
	var taken snapshot
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "LOCK TABLE checkpoints IN ACCESS SHARE MODE"); err != nil {
			return err
		}
		queries := query.New(tx)
		at, err := queries.Checkpoint(ctx, DirectoryProjection)
		if err != nil {
			return err
		}
		taken.sequence, taken.eventID = uint64(at.Sequence), at.EventID
		if taken.keys, err = queries.KeysInForce(ctx); err != nil {
			return err
		}
		if taken.hubs, err = queries.HubLogs(ctx); err != nil {
			return err
		}
		if taken.orgs, err = queries.OrgNames(ctx); err != nil {
			return err
		}
		taken.members, err = queries.AllMembers(ctx)
		return err
	})
	if err != nil {
		return snapshot{}, fmt.Errorf("read models: keys, hubs and members: %w", err)
	}
	return taken, nil
}
