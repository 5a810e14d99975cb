package readmodel

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// AccessSnapshot has the rows that package access keeps in memory, as of one event.
type AccessSnapshot struct {
	// Sequence and EventID belong to the last event in the snapshot.
	Sequence uint64
	EventID  string
	Keys     []schema.KeysInForceRow
	Hubs     []schema.HubLogsRow
	Orgs     []schema.OrgNamesRow
	Members  []schema.AllMembersRow
}

// AccessSnapshot reads a snapshot in one transaction.
func (s *Store) AccessSnapshot(ctx context.Context) (AccessSnapshot, error) {
	var snapshot AccessSnapshot
	if !isClosed(s.claimed) {
		return snapshot, errGone
	}
	options := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, options, func(tx pgx.Tx) error {
		// A rebuild locks this table while it switches, so all tables are of the same build.
		if _, err := tx.Exec(ctx, "LOCK TABLE checkpoints IN ACCESS SHARE MODE"); err != nil {
			return err
		}
		return snapshot.read(ctx, schema.New(tx))
	})
	if err != nil {
		return AccessSnapshot{}, fmt.Errorf("read models: keys, hubs and members: %w", err)
	}
	return snapshot, nil
}

func (s *AccessSnapshot) read(ctx context.Context, queries *schema.Queries) error {
	at, err := queries.Checkpoint(ctx, schema.Directory)
	if err != nil {
		return err
	}
	s.Sequence, s.EventID = uint64(at.Sequence), at.EventID
	if s.Keys, err = queries.KeysInForce(ctx); err != nil {
		return err
	}
	if s.Hubs, err = queries.HubLogs(ctx); err != nil {
		return err
	}
	if s.Orgs, err = queries.OrgNames(ctx); err != nil {
		return err
	}
	s.Members, err = queries.AllMembers(ctx)
	return err
}
