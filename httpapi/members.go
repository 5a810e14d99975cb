package httpapi

import (
	"net/http"

	"hubcloud/domain"
)

// memberBody is the contract's Member.
type memberBody struct {
	ID       string      `json:"id"`
	Email    string      `json:"email"`
	Role     domain.Role `json:"role"`
	JoinedAt string      `json:"joined_at"`
}

func newMemberBody(m domain.Member) memberBody {
	return memberBody{
		ID:       m.ID,
		Email:    m.Email,
		Role:     m.Role,
		JoinedAt: domain.FormatTime(m.JoinedAt),
	}
}

func (a *api) listMembers(req *request) error {
	limit, after, err := req.readListQuery("members")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Members(req.ctx, req.key.OrgID, limit, after)
	if err != nil {
		return err
	}
	return req.writeJSON(http.StatusOK, listOf(page, newMemberBody))
}

func (a *api) getMember(req *request) error {
	id, err := memberPath(req)
	if err != nil {
		return err
	}
	member, err := a.ReadModels.Member(req.ctx, req.key.OrgID, id)
	if err != nil {
		return err
	}
	return req.writeJSON(http.StatusOK, newMemberBody(member))
}

func (a *api) updateMember(req *request) error {
	id, err := memberPath(req)
	if err != nil {
		return err
	}
	body, err := req.readObject("role")
	if err != nil {
		return err
	}
	role, err := body.role("role")
	if err != nil {
		return err
	}
	member, err := a.Directory.ChangeRole(req.ctx, req.origin(), req.key.OrgID, id, role)
	if err != nil {
		return err
	}
	return req.writeJSON(http.StatusOK, newMemberBody(member))
}

func (a *api) removeMember(req *request) error {
	id, err := memberPath(req)
	if err != nil {
		return err
	}
	if err := a.Directory.RemoveMember(req.ctx, req.origin(), req.key.OrgID, id); err != nil {
		return err
	}
	req.writeNoContent()
	return nil
}

// memberPath returns the member id of the path, or not_found if it is not a UUID.
func memberPath(req *request) (string, error) {
	id := req.http.PathValue("member_id")
	if !domain.IsUUID(id) {
		return "", domain.ErrMemberNotFound()
	}
	return id, nil
}

// role returns a required role. It accepts owner, which Directory rejects as forbidden rather than
// as invalid.
func (o object) role(name string) (domain.Role, error) {
	text, err := o.stringField(name)
	if err != nil {
		return "", err
	}
	return domain.ParseRole(name, shorten(text))
}
