package httpapi

import (
	"context"
	"net/http"

	"hubcloud/domain"
)

// invitationBody is the contract's Invitation, with what the person may do after accepting.
type invitationBody struct {
	ID        string                  `json:"id"`
	Email     string                  `json:"email"`
	Role      domain.Role             `json:"role"`
	Access    domain.Access           `json:"access"`
	Status    domain.InvitationStatus `json:"status"`
	CreatedAt string                  `json:"created_at"`
	ExpiresAt string                  `json:"expires_at"`
}

func newInvitationBody(i domain.Invitation, access domain.Access) invitationBody {
	return invitationBody{
		ID: i.ID, Email: i.Email, Role: i.Role, Access: access, Status: i.Status,
		CreatedAt: domain.FormatTime(i.CreatedAt), ExpiresAt: domain.FormatTime(i.ExpiresAt),
	}
}

func (a *api) listInvitations(req *request) error {
	limit, after, err := req.readListQuery("invitations")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Invitations(req.ctx, req.key.Reach.OrgID, limit, after, req.start)
	if err != nil {
		return err
	}
	org, err := a.Directory.Org(req.ctx, req.key.Reach.OrgID)
	return req.answer(http.StatusOK, listOf(page, func(i domain.Invitation) invitationBody {
		known, _ := org.Invitation(i.ID)
		return newInvitationBody(i, domain.AccessOf(i.Role, known.ViewOnly))
	}), err)
}

func (a *api) createInvitation(req *request) error {
	key, err := req.idempotencyKey()
	if err != nil {
		return err
	}
	body := req.readFields("email", "role", "access")
	email, access := body.text("email"), domain.AccessMember
	if body.has("role") || body.has("access") {
		access = body.access()
	}
	if body.err != nil {
		return body.err
	}
	input := struct {
		Email  string
		Access domain.Access
	}{email, access}
	return req.answerOnce(
		http.StatusCreated,
		key,
		input,
		func(ctx context.Context, _ string) (any, error) {
			// If the answer is lost and this runs again, the second invitation replaces the first;
			// no answer has shown the first link.
			invitation, err := a.Directory.Invite(ctx, req.origin(), req.key.Reach.OrgID, email, access)
			return newInvitationBody(invitation, access), err
		},
	)
}

func (a *api) revokeInvitation(req *request, id string) error {
	return req.answerNothing(a.Directory.RevokeInvitation(req.ctx, req.origin(), req.key.Reach.OrgID, id))
}
