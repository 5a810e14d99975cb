package directory

import (
	"context"
	"crypto/rand"
	"fmt"

	"hubcloud/domain"
)

// Invite invites a person into an organization, and gives the invitation, the organization's name
// and the token that the link in the mail carries, which is kept nowhere. A pending invitation of
// the same address is replaced: its link stops working. The role owner is forbidden, and so is
// whoever may not invite; a member's address is an invalid_request; one invitation too many
// (Quotas) is rate_limited; an organization that there is not is not_found.
func (s *Service) Invite(
	ctx context.Context, o domain.Origin, orgID, email string, role domain.Role,
) (inv domain.Invitation, orgName, token string, err error) {
	if err := domain.CheckInvitedRole(role); err != nil {
		return inv, "", "", err
	}
	if email, err = domain.CleanEmail("email", email); err != nil {
		return inv, "", "", err
	}
	if !domain.IsUUID(orgID) {
		return inv, "", "", domain.ErrOrgNotFound()
	}
	o = s.stamp(o)
	made := domain.InvitationToken{OrgID: orgID, InvitationID: s.newID(o)}
	rand.Read(made.Secret[:]) // never fails: it ends the program instead
	invite := domain.Invite{
		InvitationID: made.InvitationID, Email: email, Role: role, TokenHash: made.SecretHash(),
		TTL:        s.cfg.InvitationTTL,
		MaxPending: s.cfg.Quotas.PendingInvitations, MaxPerHour: s.cfg.Quotas.InvitationsPerHour,
	}
	if s.cfg.Quotas.MayInvite != nil {
		// What is refused anyway must use up none of what a recipient may get.
		org, err := s.org(ctx, orgID)
		if err != nil {
			return inv, "", "", err
		}
		if _, err := domain.DecideInvite(org, o, invite); err != nil {
			return inv, "", "", err
		}
		if err := s.cfg.Quotas.MayInvite(ctx, orgID, email, o.At); err != nil {
			return inv, "", "", err
		}
	}
	org, seq, err := s.orgs.Update(ctx, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideInvite(org, o, invite)
	})
	if err != nil {
		return inv, "", "", err
	}
	kept, _ := org.Invitation(made.InvitationID)
	s.settled(ctx, seq)
	return kept.View(o.At), org.Name, made.Reveal(), nil
}

// RevokeInvitation takes a pending invitation back: its link stops working. One that is not pending
// (any more) is not_found.
func (s *Service) RevokeInvitation(
	ctx context.Context, o domain.Origin, orgID, invitationID string,
) error {
	if !domain.IsUUID(orgID) {
		return domain.ErrInvitationNotFound()
	}
	o = s.stamp(o)
	_, seq, err := s.orgs.Update(ctx, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideRevokeInvitation(org, o, invitationID)
	})
	if err != nil {
		return err
	}
	s.settled(ctx, seq)
	return nil
}

// AcceptInvitation makes whoever has an invitation's token a member of its organization, and makes
// the person's account if there is none. It is the person who does it, so the origin's actor does
// not count. Accepted again it does nothing, and says so. A token that is none, or whose invitation
// was revoked or replaced, or whose member was removed, is not_found; one that comes too late is
// domain.ErrInvitationExpired.
func (s *Service) AcceptInvitation(
	ctx context.Context, o domain.Origin, token string,
) (domain.Acceptance, error) {
	parsed, err := domain.ParseInvitationToken(token)
	if err != nil {
		return domain.Acceptance{}, err
	}
	o = s.stamp(o)
	memberID := s.newID(o)
	o.Actor = domain.Actor{Kind: domain.ActorMember, ID: memberID}
	var accepted domain.Acceptance
	_, seq, err := s.orgs.Update(
		ctx,
		parsed.OrgID,
		func(org domain.OrgState) (events []domain.Event, err error) {
			events, accepted, err = domain.DecideAcceptInvitation(org, o, parsed, memberID)
			if err == nil && len(events) > 0 {
				err = s.admitMember(org)
			}
			return events, err
		},
	)
	if err != nil {
		return domain.Acceptance{}, err
	}
	// Also when it was accepted before: the process can have ended between the two.
	o.Actor.ID = accepted.MemberID
	if _, err := s.EnsureAccount(ctx, o, accepted.Email); err != nil {
		if domain.CodeOf(err) == domain.CodeServiceUnavailable {
			err = fmt.Errorf(
				"%w: %w",
				domain.Unavailable(
					"the invitation is accepted, and the account could not be made; open the link again",
				),
				err,
			)
		}
		return domain.Acceptance{}, err
	}
	s.granted(ctx, seq)
	return accepted, nil
}

// ChangeRole gives a member another role. A member that the organization does not have is
// not_found; what the actor may not do, and what would leave the organization without an owner, is
// forbidden.
func (s *Service) ChangeRole(
	ctx context.Context, o domain.Origin, orgID, memberID string, role domain.Role,
) (domain.Member, error) {
	if !domain.IsUUID(orgID) {
		return domain.Member{}, domain.ErrMemberNotFound()
	}
	o = s.stamp(o)
	org, seq, err := s.orgs.Update(
		ctx,
		orgID,
		counted(s, o, orgID, func(org domain.OrgState) ([]domain.Event, error) {
			return domain.DecideChangeRole(org, o, memberID, role)
		}),
	)
	if err != nil {
		return domain.Member{}, err
	}
	member, _ := org.Member(memberID)
	return member.View(), s.inForce(ctx, seq)
}

// RemoveMember ends a membership. A member that the organization does not have (any more) is
// not_found; what the actor may not do, and what would leave the organization without an owner, is
// forbidden. When it returns nil, no replica lets the person into the organization any more.
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
	return s.inForce(ctx, seq)
}

// Account returns the account of an address, as it is now; the zero state when there is none.
func (s *Service) Account(ctx context.Context, email string) (domain.AccountState, error) {
	account, _, err := s.accounts.Get(ctx, domain.AccountKey(email))
	if err != nil || account.IsOf(email) {
		return account, err
	}
	for _, key := range domain.OtherAccountKeys(email) {
		account, _, err := s.accounts.Get(ctx, key)
		if err != nil || account.IsOf(email) {
			return account, err
		}
	}
	return domain.AccountState{}, nil
}

// EnsureAccount returns the account of an address, and makes it if there is none. The address is
// given clean.
func (s *Service) EnsureAccount(
	ctx context.Context, o domain.Origin, email string,
) (domain.AccountState, error) {
	account, err := s.Account(ctx, email)
	if err != nil || account.Exists() {
		return account, err
	}
	o = s.stamp(o)
	id := s.newID(o)
	others := domain.OtherAccountKeys(email)
	for _, key := range []string{domain.AccountKey(email), others[len(others)-1]} {
		account, _, err := s.accounts.Update(
			ctx,
			key,
			func(account domain.AccountState) ([]domain.Event, error) {
				return domain.DecideCreateAccount(account, o, id, email), nil
			},
		)
		if err != nil || account.IsOf(email) {
			return account, err
		}
		// The name is taken by an account that an earlier version took for the same address.
	}
	return domain.AccountState{}, fmt.Errorf(
		"directory: the names of an address's account are taken by other addresses",
	)
}
