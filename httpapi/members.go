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
	return req.answer(http.StatusOK, listOf(page, newMemberBody), err)
}

func (a *api) getMember(req *request, id string) error {
	member, err := a.ReadModels.Member(req.ctx, req.key.OrgID, id)
	return req.answer(http.StatusOK, newMemberBody(member), err)
}

func (a *api) updateMember(req *request, id string) error {
	body := req.readFields("role")
	role := read(body, "role", body.role)
	if body.err != nil {
		return body.err
	}
	member, err := a.Directory.ChangeRole(req.ctx, req.origin(), req.key.OrgID, id, role)
	return req.answer(http.StatusOK, newMemberBody(member), err)
}

func (a *api) removeMember(req *request, id string) error {
	return req.answerNothing(a.Directory.RemoveMember(req.ctx, req.origin(), req.key.OrgID, id))
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
