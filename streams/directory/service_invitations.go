package directory

import (
	"context"
	"crypto/rand"
	"errors"

	"hubcloud/domain"
)

// Invite invites a person into an organization and queues the mail with the link. A pending
// invitation of the same address is replaced: its link stops working. When the mail cannot be
// queued after the invitation was stored, the error says that the request can be repeated. Invite
// returns forbidden for the role owner and for an actor who may not invite, invalid_request for a
// member's address, rate_limited for an invitation over Quotas, and not_found for an unknown
// organization. It uses ServiceConfig.Mailer.
func (s *Service) Invite(
	ctx context.Context, o domain.Origin, orgID, email string, access domain.Access,
) (domain.Invitation, error) {
	if s.cfg.Mailer == nil {
		return domain.Invitation{}, errors.New("directory: Invite needs ServiceConfig.Mailer")
	}
	if err := domain.CheckInvited(access); err != nil {
		return domain.Invitation{}, err
	}
	email, err := domain.CleanEmail("email", email)
	if err != nil {
		return domain.Invitation{}, err
	}
	o = s.stamp(o)
	token := domain.InvitationToken{OrgID: orgID, InvitationID: s.newID(o)}
	rand.Read(token.Secret[:]) // never fails: it ends the program instead
	invite := domain.Invite{
		InvitationID: token.InvitationID, Email: email, Access: access,
		TokenHash:  token.SecretHash(),
		TTL:        s.cfg.InvitationTTL,
		MaxPending: s.cfg.Quotas.PendingInvitations, MaxPerHour: s.cfg.Quotas.InvitationsPerHour,
	}
	// An invitation that is rejected anyway must not count for its recipient: decide first.
	org, err := s.Org(ctx, orgID)
	if err != nil {
		return domain.Invitation{}, err
	}
	if _, err := domain.DecideInvite(org, o, invite); err != nil {
		return domain.Invitation{}, err
	}
	if err := s.checkInvitationMail(ctx, orgID, email, o.At); err != nil {
		return domain.Invitation{}, err
	}
	org, seq, err := s.orgs.Update(ctx, orgID, func(org domain.OrgState) ([]domain.Event, error) {
		return domain.DecideInvite(org, o, invite)
	})
	if err != nil {
		return domain.Invitation{}, err
	}
	stored, _ := org.Invitation(token.InvitationID)
	s.awaitReadable(ctx, seq)
	invitation := stored.View(o.At)
	inviter, _ := org.Member(o.Actor.ID) // zero for an actor who is no member
	return invitation, s.cfg.Mailer.SendInvitation(ctx, domain.InvitationMail{
		Invitation: invitation, Access: access, OrgID: orgID, OrgName: org.Name, InvitedBy: inviter.Email,
		Token: token.Reveal(),
	})
}

// RevokeInvitation revokes a pending invitation: its link stops working. It returns not_found for
// an invitation that is not pending.
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
	s.awaitReadable(ctx, seq)
	return nil
}

// AcceptInvitation makes the person with an invitation's token a member of its organization, and
// creates the person's account if there is none. The actor of the events is the person, whatever
// the origin's actor. A repeated call does nothing and sets Acceptance.Already. It returns
// not_found for an invalid token and for one whose invitation was revoked or replaced or whose
// member was removed, and domain.ErrInvitationExpired for an expired one.
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
	decide := func(org domain.OrgState) (events []domain.Event, err error) {
		events, accepted, err = domain.DecideAcceptInvitation(org, o, parsed, memberID)
		if err == nil && len(events) > 0 {
			err = s.checkMemberQuota(org)
		}
		return events, err
	}
	_, seq, err := s.orgs.Update(ctx, parsed.OrgID, decide)
	if err != nil {
		return domain.Acceptance{}, err
	}
	// Also for a repeated call: the process may have ended before it created the account.
	o.Actor.ID = accepted.MemberID
	if _, err := s.EnsureAccount(ctx, o, accepted.Email); err != nil {
		if domain.CodeOf(err) == domain.CodeServiceUnavailable {
			err = domain.UnavailableBecause(
				err,
				"the invitation is accepted, but the account could not be created; "+
					"open the link again",
			)
		}
		return domain.Acceptance{}, err
	}
	s.awaitGranted(ctx, seq)
	return accepted, nil
}

// InvitationRecipient returns the address that the mail of an invitation goes to: the one stored
// with the account of the invited address, or that address if it has no account. It returns "" when
// the invitation of the token is not pending any more. A mail that waits in a queue must call it
// before it goes out.
func (s *Service) InvitationRecipient(
	ctx context.Context, token, email string,
) (recipient string, err error) {
	parsed, err := domain.ParseInvitationToken(token)
	if err != nil {
		return "", nil
	}
	org, _, err := s.orgs.Get(ctx, parsed.OrgID)
	if err != nil {
		return "", err
	}
	invitation, ok := org.Invitation(parsed.InvitationID)
	if !ok || invitation.View(s.cfg.Now()).Status != domain.InvitationPending {
		return "", nil
	}
	account, err := s.Account(ctx, email)
	if err != nil {
		return "", err
	}
	if account.Exists() {
		return account.Email, nil
	}
	return email, nil
}
