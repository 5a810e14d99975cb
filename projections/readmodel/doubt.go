package readmodel

import (
	"context"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// HubsInDoubt returns the hubs of all organizations, and former ones, whose last reported states
// are not certain. It fails with service_unavailable until the first build of these read models is
// complete.
func (s *Store) HubsInDoubt(ctx context.Context) ([]domain.HubID, error) {
	ask := func(ctx context.Context) ([]domain.HubID, error) {
		rows, err := s.queries.HubsInDoubt(ctx)
		return pageOf(rows, len(rows), func(id string) domain.HubID { return domain.HubID(id) }).Data, err
	}
	return readOf(ctx, s, schema.Devices, noOrg, "hubs in doubt", ask)
}
