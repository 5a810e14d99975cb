package projector

import (
	"context"

	"hubcloud/domain"
	"hubcloud/projections/schema"
)

// Skips returns the entries that operators have made a projection skip, by their sequence in its
// stream.
type Skips func(ctx context.Context, projection string) (map[uint64]domain.ProjectionSkipped, error)

// Sequences returns the sequences of the skipped entries.
func (s Skips) Sequences(ctx context.Context, projection string) (map[uint64]bool, error) {
	if schema.ProjectionOf(projection) == schema.Devices {
		return nil, nil // no event stops it
	}
	skips, err := s(ctx, projection)
	if err != nil {
		return nil, err
	}
	sequences := make(map[uint64]bool, len(skips))
	for seq := range skips {
		sequences[seq] = true
	}
	return sequences, nil
}
