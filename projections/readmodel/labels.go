package readmodel

import (
	"context"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// DeviceLabels returns the labels of a hub's devices, by device id. Devices without a label are
// missing. A hub that the organization does not have has no labels.
func (s *Store) DeviceLabels(
	ctx context.Context, org string, hub domain.HubID,
) (map[int64]domain.DeviceLabel, error) {
	params := schema.DeviceLabelsParams{OrgID: org, HubID: schema.StorableText(string(hub))}
	ask := func(ctx context.Context) (map[int64]domain.DeviceLabel, error) {
		rows, err := s.queries.DeviceLabels(ctx, params)
		labels := make(map[int64]domain.DeviceLabel, len(rows))
		for _, row := range rows {
			labels[row.DeviceID] = domain.DeviceLabel{Name: row.Name, Room: row.Room}
		}
		return labels, err
	}
	return read(ctx, s, org, "names and rooms", ask)
}
