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

func formOfMember(m domain.Member) memberBody {
	return memberBody{
		ID:       m.ID,
		Email:    m.Email,
		Role:     m.Role,
		JoinedAt: domain.FormatTime(m.JoinedAt),
	}
}

func (a *api) listMembers(x *exchange) error {
	limit, after, err := x.readListing("members")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Members(x.ctx, x.key.OrgID, limit, after)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, listOf(page.Data, page.HasMore, formOfMember))
}

func (a *api) getMember(x *exchange) error {
	id, err := memberPath(x)
	if err != nil {
		return err
	}
	member, err := a.ReadModels.Member(x.ctx, x.key.OrgID, id)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, formOfMember(member))
}

func (a *api) updateMember(x *exchange) error {
	id, err := memberPath(x)
	if err != nil {
		return err
	}
	body, err := x.readObject("role")
	if err != nil {
		return err
	}
	role, err := body.role("role")
	if err != nil {
		return err
	}
	member, err := a.Directory.ChangeRole(x.ctx, x.origin(), x.key.OrgID, id, role)
	if err != nil {
		return err
	}
	return x.writeJSON(http.StatusOK, formOfMember(member))
}

func (a *api) removeMember(x *exchange) error {
	id, err := memberPath(x)
	if err != nil {
		return err
	}
	if err := a.Directory.RemoveMember(x.ctx, x.origin(), x.key.OrgID, id); err != nil {
		return err
	}
	x.writeNothing()
	return nil
}

// memberPath gives the member id of the path. There is no member with an id of another form.
func memberPath(x *exchange) (string, error) {
	id := x.r.PathValue("member_id")
	if !domain.IsUUID(id) {
		return "", domain.ErrMemberNotFound()
	}
	return id, nil
}

// role gives a field that must be there and be a role. That of an owner is one too: who may not
// give it is told so, and not that it is none.
func (o object) role(name string) (domain.Role, error) {
	text, err := o.text(name)
	if err != nil {
		return "", err
	}
	return domain.ParseRole(name, shorten(text))
}
