package directory

import (
	"context"

	"hubcloud/domain"
)

// InvitationPending says whether the invitation of a token can still be accepted: whoever holds a
// mail back for a while asks it before the mail goes out. It is fresh; a token that is none is not
// pending.
func (s *Service) InvitationPending(ctx context.Context, token string) (bool, error) {
	parsed, err := domain.ParseInvitationToken(token)
	if err != nil {
		return false, nil
	}
	org, _, err := s.orgs.Get(ctx, parsed.OrgID)
	if err != nil {
		return false, err
	}
	invitation, ok := org.Invitation(parsed.InvitationID)
	return ok && invitation.View(s.cfg.Now()).Status == domain.InvitationPending, nil
}
