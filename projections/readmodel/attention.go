package readmodel

import (
	"context"
	_ "embed"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

//go:embed sql/states_attention.sql
var statesAttention string

// maxAttention is how many channels StatesNeedingAttention returns.
const maxAttention = 20_000

// StatesNeedingAttention returns the last reported states of the channels of an organization's
// devices of which some channel may need attention, in the order of hubs and devices. site and hub
// restrict them unless they are "". It returns at most 20,000 channels, and fails with
// service_unavailable until the first build of these read models is complete.
func (s *Store) StatesNeedingAttention(
	ctx context.Context, org, site string, hub domain.HubID,
) ([]domain.ReportedState, error) {
	ask := func(ctx context.Context) ([]domain.ReportedState, error) {
		rows, err := s.pool.Query(
			ctx, statesAttention, org, schema.StorableText(site),
			schema.StorableText(string(hub)), maxAttention,
		)
		if err != nil {
			return nil, err
		}
		return collectStates(rows)
	}
	return readOf(ctx, s, schema.Devices, org, "states that need attention", ask)
}
