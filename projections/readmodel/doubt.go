package readmodel

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

//go:embed sql/hubs_in_doubt.sql
var hubsInDoubt string

// HubsInDoubt returns the hubs of all organizations, and former ones, whose last reported states
// are not certain. It fails with service_unavailable until the first build of these read models is
// complete.
func (s *Store) HubsInDoubt(ctx context.Context) ([]domain.HubID, error) {
	ask := func(ctx context.Context) ([]domain.HubID, error) {
		rows, err := s.pool.Query(ctx, hubsInDoubt)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[domain.HubID])
	}
	return readOf(ctx, s, schema.Devices, noOrg, "hubs in doubt", ask)
}
