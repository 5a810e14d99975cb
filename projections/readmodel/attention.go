package readmodel

import (
	"context"
	_ "embed"

	"github.com/jackc/pgx/v5"

	"hubcloud/domain"
	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/statemodel"
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
		db := s.whenComplete()
		built, err := statemodel.Built(ctx, db)
		if err == nil && !built {
			err = projections.ErrBuilding
		}
		if err != nil {
			return nil, err
		}
		rows, err := db.Query(
			ctx, statemodel.SQL(statesAttention), org, database.StorableText(site),
			database.StorableText(string(hub)), maxAttention,
		)
		if err != nil {
			return nil, err
		}
		var row stateRow
		var states []domain.ReportedState
		_, err = pgx.ForEachRow(rows, row.into(), func() error {
			states = append(states, row.state())
			return nil
		})
		return states, err
	}
	return read(ctx, s, "states that need attention", ask)
}
