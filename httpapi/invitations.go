package httpapi

import (
	"context"
	"net/http"

	"hubcloud/domain"
)

// invitationBody is the contract's Invitation.
type invitationBody struct {
	ID        string                  `json:"id"`
	Email     string                  `json:"email"`
	Role      domain.Role             `json:"role"`
	Status    domain.InvitationStatus `json:"status"`
	CreatedAt string                  `json:"created_at"`
	ExpiresAt string                  `json:"expires_at"`
}

func newInvitationBody(i domain.Invitation) invitationBody {
	return invitationBody{
		ID: i.ID, Email: i.Email, Role: i.Role, Status: i.Status,
		CreatedAt: domain.FormatTime(i.CreatedAt), ExpiresAt: domain.FormatTime(i.ExpiresAt),
	}
}

func (a *api) listInvitations(req *request) error {
	limit, after, err := req.readListQuery("invitations")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Invitations(req.ctx, req.key.OrgID, limit, after, req.start)
	return req.answer(http.StatusOK, listOf(page, newInvitationBody), err)
}

func (a *api) createInvitation(req *request) error {
	key, err := idempotencyKey(req.http.Header)
	if err != nil {
		return err
	}
	body := req.readFields("email", "role")
	email, role := body.text("email"), domain.RoleMember
	if body.has("role") {
		role = read(body, "role", body.role)
	}
	if body.err != nil {
		return body.err
	}
	input := struct {
		Email string
		Role  domain.Role
	}{email, role}
	return req.answerOnce(
		http.StatusCreated,
		key,
		input,
		func(ctx context.Context, _ string) (any, error) {
			// If the answer is lost and this runs again, the second invitation replaces the first;
			// no answer has shown the first link.
			invitation, err := a.Directory.Invite(ctx, req.origin(), req.key.OrgID, email, role)
			return newInvitationBody(invitation), err
		},
	)
}

func (a *api) revokeInvitation(req *request, id string) error {
	return req.answerNothing(a.Directory.RevokeInvitation(req.ctx, req.origin(), req.key.OrgID, id))
}
