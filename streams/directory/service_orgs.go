package directory

import (
	"context"

	"hubcloud/domain"
)

// RenameOrg renames an organization. It returns not_found for an unknown organization, and
// forbidden for an actor that may not rename it.
func (s *Service) RenameOrg(ctx context.Context, o domain.Origin, orgID, name string) error {
	name, err := domain.CleanName("name", name)
	if err != nil {
		return err
	}
	o = s.stamp(o)
	seq, err := s.updateOrg(ctx, o, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideRenameOrg(org, o, name)
	})
	if err != nil {
		return err
	}
	s.awaitGranted(ctx, seq) // replicas show the name from memory
	return nil
}

// SeeConditions records that the actor has seen occurrences of conditions of hubs or, if undo is
// set, takes back that they were seen. It returns not_found if the organization does not have one of
// the hubs.
func (s *Service) SeeConditions(
	ctx context.Context, o domain.Origin, orgID string, occurrences []domain.Occurrence, undo bool,
) error {
	checked := map[domain.HubID]bool{}
	for _, c := range occurrences {
		if checked[c.HubID] {
			continue
		}
		if hub, _, err := s.Hub(ctx, c.HubID); err != nil {
			return err
		} else if orgID == "" || hub.OrgID != orgID {
			return domain.ErrHubNotFound()
		}
		checked[c.HubID] = true
	}
	o = s.stamp(o)
	_, err := s.updateOrg(ctx, o, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		if undo {
			return domain.DecideUnseeConditions(org, o, occurrences)
		}
		return domain.DecideSeeConditions(org, o, occurrences)
	})
	return err
}

// updateOrg updates an organization by a decision, and returns the sequence of its last event.
func (s *Service) updateOrg(
	ctx context.Context, o domain.Origin, orgID string,
	decide func(domain.OrgState) ([]domain.Event, error),
) (seq uint64, err error) {
	if !domain.IsUUID(orgID) {
		return 0, domain.ErrOrgNotFound()
	}
	_, seq, err = s.orgs.Update(ctx, orgID, limitChanges(s, o, orgID, decide))
	return seq, err
}

// SetBook chooses what an organization keeps of its events. Its errors are domain.DecideSetBook's.
func (s *Service) SetBook(
	ctx context.Context, o domain.Origin, orgID string, want domain.BookSettings,
) error {
	o = s.stamp(o)
	_, err := s.updateOrg(ctx, o, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideSetBook(org, o, want)
	})
	return err
}
