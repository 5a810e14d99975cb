package directory

import (
	"context"
	"errors"

	"hubcloud/domain"
)

// maxUndoHistory is how many events of an aggregate are read to undo a change of it. One with more
// cannot be undone.
const maxUndoHistory = 20_000

// Undo sets back what a request of the actor changed within domain.UndoTime at sites and hubs of the
// organization or, without any, at the organization itself, and returns what became of it. What
// was changed again meanwhile stays. Each site and hub is one change, in order: after an error some
// may be set back. It returns domain.ErrCannotUndo for other requests, and forbidden for what the
// actor may not change any more. The caller has checked that the actor may change sites and hubs.
func (s *Service) Undo(
	ctx context.Context, o domain.Origin, orgID, request string, sites []string, hubs []domain.HubID,
) (undone domain.Undone, err error) {
	o = s.stamp(o)
	valid := domain.IsUUID(orgID)
	for _, site := range sites {
		valid = valid && domain.IsUUID(site)
	}
	for _, hub := range hubs {
		_, ok := domain.ParseHubID(string(hub))
		valid = valid && ok
	}
	if !valid {
		return undone, domain.ErrCannotUndo()
	}
	var last uint64
	count := func(part domain.Undone, seq uint64, err error) error {
		undone.Add(part)
		last = max(last, seq)
		return err
	}
	if len(sites)+len(hubs) == 0 {
		err = count(undo(ctx, s, s.orgs, o, orgID, orgID, func(history []domain.Event) undoDecision {
			return decided(domain.DecideUndoOrg(history, o, request))
		}))
	}
	for i := 0; i < len(sites) && err == nil; i++ {
		id := siteAggregate(orgID, sites[i])
		err = count(undo(ctx, s, s.sites, o, orgID, id, func(history []domain.Event) undoDecision {
			return decided(domain.DecideUndoSite(history, o, request))
		}))
	}
	for i := 0; i < len(hubs) && err == nil; i++ {
		id := string(hubs[i])
		err = count(undo(ctx, s, s.hubs, o, orgID, id, func(history []domain.Event) undoDecision {
			return decided(domain.DecideUndoHub(history, o, orgID, request))
		}))
	}
	if last > 0 {
		s.awaitReadable(ctx, last)
	}
	return undone, err
}

// undoDecision is what a decision to undo returns.
type undoDecision struct {
	events []domain.Event
	undone domain.Undone
	err    error
}

func decided(events []domain.Event, undone domain.Undone, err error) undoDecision {
	return undoDecision{events, undone, err}
}

// undo sets back what was changed at one aggregate, and returns the sequence of its last event; 0 after
// an error.
func undo[S any](
	ctx context.Context, s *Service, of *Repository[S], o domain.Origin, org, id string,
	decide func(history []domain.Event) undoDecision,
) (domain.Undone, uint64, error) {
	var decision undoDecision
	_, seq, err := of.Update(ctx, id, limitChanges(s, o, org, func(S) ([]domain.Event, error) {
		var history []domain.Event
		_, err := of.log.Load(ctx, of.subject(id), 0, func(_ uint64, e domain.Event) error {
			if history = append(history, e); len(history) > maxUndoHistory {
				return domain.ErrCannotUndo()
			}
			return nil
		})
		switch {
		case errors.Is(err, domain.ErrCannotUndo()):
			return nil, err
		case err != nil:
			return nil, readError(err)
		}
		decision = decide(history)
		return decision.events, decision.err
	}))
	if err != nil {
		return domain.Undone{}, 0, err
	}
	return decision.undone, seq, nil
}
