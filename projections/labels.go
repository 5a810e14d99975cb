package projections

import (
	"context"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/internal/query"
)

// deviceLabels is DeviceLabels, asked once.
func (s *Store) deviceLabels(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	rows, err := s.queries.DeviceLabels(
		ctx, query.DeviceLabelsParams{OrgID: org, HubID: storable(string(hub))},
	)
	if err != nil {
		return nil, fmt.Errorf("read models: names and rooms: %w", err)
	}
	labels := make(map[int64]domain.DeviceLabel, len(rows))
	for _, row := range rows {
		labels[row.DeviceID] = domain.DeviceLabel{Name: row.Name, Room: row.Room}
	}
	return labels, nil
}
