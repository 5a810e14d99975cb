package directory

import (
	"context"

	"hubcloud/domain"
)

// Orgs returns every organization, in the order of their creation, as of the moment of the call.
func (l *Log) Orgs(ctx context.Context) ([]domain.OrgState, error) {
	return states(ctx, l, domain.OrgOf, domain.EvolveOrg)
}

// Keys returns every API key, revoked ones too, in the order of their creation, as of the moment of
// the call. The secrets are not stored.
func (l *Log) Keys(ctx context.Context) ([]domain.KeyState, error) {
	return states(ctx, l, domain.KeyOf, domain.EvolveKey)
}

// Inventory calls fn with every hub of the inventory, in the order of their registration, as of the
// moment of the call.
func (l *Log) Inventory(ctx context.Context, fn func(domain.HubState) error) error {
	hubs, err := states(ctx, l, domain.HubOf, domain.EvolveHub)
	if err != nil {
		return err
	}
	for _, hub := range hubs {
		if err := fn(hub); err != nil {
			return err
		}
	}
	return nil
}

// states folds the events of every aggregate of a kind, in the order of their first events. idOf
// returns the aggregate of a fact, and false for facts of other kinds.
func states[K comparable, S any](
	ctx context.Context, l *Log, idOf func(domain.Fact) (K, bool),
	evolve func(S, domain.Event) (S, error),
) ([]S, error) {
	head, err := l.Head(ctx, 0)
	if err != nil {
		return nil, err
	}
	var all []S
	index := map[K]int{}
	err = l.Replay(ctx, 0, head, func(batch []Recorded) error {
		for _, r := range batch {
			id, ok := idOf(r.Fact)
			if !ok {
				continue
			}
			at, known := index[id]
			if !known {
				at = len(all)
				index[id] = at
				all = append(all, *new(S))
			}
			if all[at], err = evolve(all[at], r.Event); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}
