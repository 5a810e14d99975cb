package readmodel

import (
	"context"
	"fmt"

	"hubcloud/domain"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
)

// DeviceLabels returns the labels of a hub's devices, by device id. Devices without a label are
// missing. A hub that the organization does not have has no labels.
func (s *Store) DeviceLabels(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	return read(ctx, s, func(ctx context.Context) (map[int64]domain.DeviceLabel, error) {
		return s.deviceLabels(ctx, org, hub)
	})
}

func (s *Store) deviceLabels(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	rows, err := s.queries.DeviceLabels(
		ctx, query.DeviceLabelsParams{OrgID: org, HubID: database.StorableText(string(hub))},
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
