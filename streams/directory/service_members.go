package directory

import (
	"context"
	"slices"

	"hubcloud/domain"
)

// ChangeRole changes a member's role. When its error is nil, every replica acts by the new role. It
// returns not_found for a member that the organization does not have, and forbidden for a change
// that the actor may not make or that leaves the organization without an owner.
func (s *Service) ChangeRole(
	ctx context.Context, o domain.Origin, orgID, memberID string, role domain.Role,
) (domain.Member, error) {
	if !domain.IsUUID(orgID) {
		return domain.Member{}, domain.ErrMemberNotFound()
	}
	o = s.stamp(o)
	return s.changeMember(ctx, o, orgID, memberID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideChangeRole(org, o, memberID, role)
	})
}

// ChangeAccess is ChangeRole that also decides whether the member may only look.
func (s *Service) ChangeAccess(
	ctx context.Context, o domain.Origin, orgID, memberID string, access domain.Access,
) (domain.Member, error) {
	if !domain.IsUUID(orgID) {
		return domain.Member{}, domain.ErrMemberNotFound()
	}
	o = s.stamp(o)
	return s.changeMember(ctx, o, orgID, memberID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideChangeAccess(org, o, memberID, access)
	})
}

// NameMember sets the name that the portal shows for the actor; "" removes it. It returns
// invalid_request for a name that CleanLabel rejects, and not_found for an actor who is no member.
func (s *Service) NameMember(ctx context.Context, o domain.Origin, orgID, name string) error {
	name, err := domain.CleanLabel("name", name)
	if err != nil {
		return err
	}
	o = s.stamp(o)
	_, err = s.updateOrg(ctx, o, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return s.limitPreferences(o, orgID)(domain.DecideNameMember(org, o, name))
	})
	return err
}

// changeMember updates an organization by a decision about a member, and returns the member.
func (s *Service) changeMember(
	ctx context.Context, o domain.Origin, orgID, memberID string,
	decide func(domain.OrgState) ([]domain.Event, error),
) (domain.Member, error) {
	org, seq, err := s.orgs.Update(ctx, orgID, limitChanges(s, o, orgID, decide))
	if err != nil {
		return domain.Member{}, err
	}
	member, _ := org.Member(memberID)
	return member.View(), s.awaitInForce(ctx, seq)
}

// RemoveMember ends a membership. When it returns nil, no replica lets the person into the
// organization any more. It returns not_found for a member that the organization does not have, and
// forbidden for a removal that the actor may not make or that leaves the organization without an
// owner.
func (s *Service) RemoveMember(ctx context.Context, o domain.Origin, orgID, memberID string) error {
	if !domain.IsUUID(orgID) {
		return domain.ErrMemberNotFound()
	}
	o = s.stamp(o)
	_, seq, err := s.orgs.Update(ctx, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideRemoveMember(org, o, memberID)
	})
	if err != nil {
		return err
	}
	return s.awaitInForce(ctx, seq)
}

// SetGroupAccess makes the membership of a person what the person's groups at the identity provider
// allow: access, "" for nothing. It changes only memberships that groups gave, and never the last
// owner. When it returns nil, every replica acts by it. It returns not_found for access in an unknown
// organization, and rate_limited for one that is full.
func (s *Service) SetGroupAccess(
	ctx context.Context, o domain.Origin, orgID, email string, access domain.Access,
) error {
	o = s.stamp(o)
	memberID := s.newID(o)
	_, seq, err := s.orgs.Update(ctx, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		events, err := domain.DecideGroupAccess(org, o, memberID, email, access)
		if err == nil && slices.ContainsFunc(events, func(e domain.Event) bool {
			return e.Type == domain.MemberAdded{}.EventType()
		}) {
			err = s.checkMemberQuota(org)
		}
		return events, err
	})
	if err != nil {
		return err
	}
	return s.awaitInForce(ctx, seq)
}
