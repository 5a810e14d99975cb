package directory

import (
	"context"

	"hubcloud/domain"
)

// What operators do with hubs of the inventory. A hub that is not in the inventory is not_found.
// Each method returns the hub as it is afterwards, once every replica acts by it. None of them cuts
// the hub's connections.

// RotateSecret replaces the enrolment secret of a hub by the one with this SHA-256, and revokes the
// hub's certificates unless they are to be kept.
func (s *Service) RotateSecret(
	ctx context.Context, o domain.Origin, hubID domain.HubID, secretHash []byte,
	keepCertificate bool,
) (domain.HubState, error) {
	o = s.stamp(o)
	return s.changeInventory(ctx, hubID, func(h domain.HubState) ([]domain.Event, error) {
		return domain.DecideRotateSecret(h, o, secretHash, keepCertificate)
	})
}

// BlockHub keeps a hub from enrolling and connecting. One that is blocked already stays so.
func (s *Service) BlockHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID,
) (domain.HubState, error) {
	o = s.stamp(o)
	return s.changeInventory(
		ctx, hubID,
		func(h domain.HubState) ([]domain.Event, error) { return domain.DecideBlockHub(h, o) },
	)
}

// UnblockHub ends the blocking of a hub. One that is not blocked stays so.
func (s *Service) UnblockHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID,
) (domain.HubState, error) {
	o = s.stamp(o)
	return s.changeInventory(
		ctx, hubID,
		func(h domain.HubState) ([]domain.Event, error) { return domain.DecideUnblockHub(h, o) },
	)
}

// ReleaseHub takes a hub away from its organization, as if it had never been added. after is the
// last sequence of the hub's stream. A hub that no organization has stays so.
func (s *Service) ReleaseHub(
	ctx context.Context, o domain.Origin, hubID domain.HubID, after uint64,
) (domain.HubState, error) {
	o = s.stamp(o)
	return s.changeInventory(
		ctx, hubID,
		func(h domain.HubState) ([]domain.Event, error) { return domain.DecideReleaseHub(h, o, after) },
	)
}

func (s *Service) changeInventory(
	ctx context.Context, hubID domain.HubID, decide func(domain.HubState) ([]domain.Event, error),
) (domain.HubState, error) {
	hub, seq, err := s.updateHub(ctx, hubID, decide)
	if err != nil {
		return hub, err
	}
	return hub, s.inForce(ctx, seq)
}

// Inventory calls fn with every hub of the inventory, in the order of their registration, as the
// directory has them at the moment of the call.
func (l *Log) Inventory(ctx context.Context, fn func(domain.HubState) error) error {
	head, err := l.Head(ctx, 0)
	if err != nil {
		return err
	}
	hubs, order := map[domain.HubID]domain.HubState{}, []domain.HubID(nil)
	err = l.Replay(ctx, 0, head, func(batch []Recorded) error {
		for _, r := range batch {
			hub, ok := domain.HubOf(r.Fact)
			if !ok {
				continue
			}
			before, known := hubs[hub]
			after, err := domain.EvolveHub(before, r.Event)
			if err != nil {
				return err
			}
			if !known {
				order = append(order, hub)
			}
			hubs[hub] = after
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, hub := range order {
		if err := fn(hubs[hub]); err != nil {
			return err
		}
	}
	return nil
}
