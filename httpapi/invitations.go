package httpapi

import (
	"context"
	"net/http"

	"hubcloud/domain"
)

// invitationBody is an invitation; the contract names its address and its role.
type invitationBody struct {
	ID        string                  `json:"id"`
	Email     string                  `json:"email"`
	Role      domain.Role             `json:"role"`
	Status    domain.InvitationStatus `json:"status"`
	CreatedAt string                  `json:"created_at"`
	ExpiresAt string                  `json:"expires_at"`
}

func formOfInvitation(i domain.Invitation) invitationBody {
	return invitationBody{
		ID: i.ID, Email: i.Email, Role: i.Role, Status: i.Status,
		CreatedAt: domain.FormatTime(i.CreatedAt), ExpiresAt: domain.FormatTime(i.ExpiresAt),
	}
}

func (a *api) listInvitations(x *exchange) error {
	limit, after, err := x.readListing("invitations")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Invitations(x.ctx, x.key.OrgID, limit, after, x.start)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, listOf(page.Data, page.HasMore, formOfInvitation))
}

func (a *api) createInvitation(x *exchange) error {
	key, err := idempotencyKey(x.r.Header)
	if err != nil {
		return err
	}
	body, err := x.readObject("email", "role")
	if err != nil {
		return err
	}
	email, err := body.text("email")
	if err != nil {
		return err
	}
	role := domain.RoleMember
	if body.has("role") {
		if role, err = body.role("role"); err != nil {
			return err
		}
	}
	asked := struct {
		Email string
		Role  domain.Role
	}{email, role}
	return x.answerOnce(
		http.StatusCreated,
		key,
		asked,
		func(ctx context.Context, _ string) (any, error) {
			// Done again after its answer was lost it replaces the first, whose link nobody has
			// from an answer.
			invitation, err := a.Directory.Invite(ctx, x.origin(), x.key.OrgID, email, role)
			return formOfInvitation(invitation), err
		},
	)
}

func (a *api) revokeInvitation(x *exchange) error {
	id := x.r.PathValue("invitation_id")
	if !domain.IsUUID(id) {
		return domain.ErrInvitationNotFound()
	}
	if err := a.Directory.RevokeInvitation(x.ctx, x.origin(), x.key.OrgID, id); err != nil {
		return err
	}
	x.writeNothing()
	return nil
}
