package directory

import (
	"context"

	"hubcloud/domain"
)

// SetMailPreferences sets which conditions a member gets mails about. It returns invalid_request
// for a site that the organization does not have, and for what domain.DecideSetMailPreferences
// rejects; forbidden for an actor that is not the member; not_found for an unknown member.
func (s *Service) SetMailPreferences(
	ctx context.Context, o domain.Origin, orgID, memberID string, p domain.MailPreferences,
) error {
	o = s.stamp(o)
	org, err := s.Org(ctx, orgID)
	if err != nil {
		return err
	}
	// What is rejected anyway must not read hundreds of sites.
	if _, err := domain.DecideSetMailPreferences(org, o, memberID, p); err != nil {
		return err
	}
	if err := s.checkSites(ctx, orgID, p.Sites); err != nil {
		return err
	}
	_, err = s.updateOrg(ctx, o, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return s.limitPreferences(o, orgID)(domain.DecideSetMailPreferences(org, o, memberID, p))
	})
	return err
}

// StopMails ends all mails about conditions to a member. The actor of the event is the member,
// whatever the origin's actor. It returns not_found for an unknown member. The sites that the
// member has chosen and the quiet hours stay.
func (s *Service) StopMails(
	ctx context.Context, o domain.Origin, orgID, memberID string,
) error {
	o = s.stamp(o)
	o.Actor = domain.Actor{Kind: domain.ActorMember, ID: memberID}
	if !domain.IsUUID(orgID) {
		return domain.ErrMemberNotFound()
	}
	// Not limited by ChangesPerHour: nobody may be kept from unsubscribing.
	_, _, err := s.orgs.Update(ctx, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		member, ok := org.Member(memberID)
		if !ok {
			return nil, domain.ErrMemberNotFound()
		}
		p := member.MailPreferences()
		p.Topics = nil
		return domain.DecideSetMailPreferences(org, o, memberID, p)
	})
	return err
}

// MailRecipient returns the address that a mail about conditions goes to: the one stored with the
// member's account. It returns "" when the organization has no such member or the member has chosen
// no mails. A mail that waits in a queue must call it before it goes out.
func (s *Service) MailRecipient(
	ctx context.Context, orgID, memberID string,
) (recipient string, err error) {
	return s.recipient(ctx, orgID, memberID, func(m domain.OrgMember) bool {
		return !m.MailPreferences().None()
	})
}

// ManagerRecipient returns the address that a mail to an owner or admin goes to, as MailRecipient
// does; "" if the member is neither.
func (s *Service) ManagerRecipient(
	ctx context.Context, orgID, memberID string,
) (recipient string, err error) {
	return s.recipient(ctx, orgID, memberID, func(m domain.OrgMember) bool {
		return m.Role != domain.RoleMember
	})
}

// recipient returns the address of a member's account; "" for a member who gets no such mail, and
// for one that the organization does not have.
func (s *Service) recipient(
	ctx context.Context, orgID, memberID string, gets func(domain.OrgMember) bool,
) (string, error) {
	if !domain.IsUUID(orgID) {
		return "", nil
	}
	org, _, err := s.orgs.Get(ctx, orgID)
	if err != nil {
		return "", err
	}
	member, ok := org.Member(memberID)
	if !ok || !gets(member) {
		return "", nil
	}
	account, err := s.Account(ctx, member.Email)
	if err != nil {
		return "", err
	}
	if account.Exists() {
		return account.Email, nil
	}
	return member.Email, nil
}
