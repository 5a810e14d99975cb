package httpapi

import (
	"net/http"

	"hubcloud/domain"
)

// memberBody is the contract's Member, with what the member may do.
type memberBody struct {
	ID       string        `json:"id"`
	Email    string        `json:"email"`
	Role     domain.Role   `json:"role"`
	Access   domain.Access `json:"access"`
	JoinedAt string        `json:"joined_at"`
}

// newMemberBody returns the body of a member of the organization, which knows whether the member
// may only look.
func newMemberBody(m domain.Member, org domain.OrgState) memberBody {
	known, _ := org.Member(m.ID)
	return memberBody{
		ID: m.ID, Email: m.Email, Role: m.Role, Access: domain.AccessOf(m.Role, known.ViewOnly),
		JoinedAt: domain.FormatTime(m.JoinedAt),
	}
}

// answerMember answers with a member, unless there is an error.
func (a *api) answerMember(req *request, member domain.Member, err error) error {
	var org domain.OrgState
	if err == nil {
		org, err = a.Directory.Org(req.ctx, req.key.Reach.OrgID)
	}
	return req.answer(http.StatusOK, newMemberBody(member, org), err)
}

func (a *api) listMembers(req *request) error {
	limit, after, err := req.readListQuery("members")
	if err != nil {
		return err
	}
	page, err := a.ReadModels.Members(req.ctx, req.key.Reach.OrgID, limit, after)
	if err != nil {
		return err
	}
	org, err := a.Directory.Org(req.ctx, req.key.Reach.OrgID)
	return req.answer(http.StatusOK, listOf(page, func(m domain.Member) memberBody {
		return newMemberBody(m, org)
	}), err)
}

func (a *api) getMember(req *request, id string) error {
	member, err := a.ReadModels.Member(req.ctx, req.key.Reach.OrgID, id)
	return a.answerMember(req, member, err)
}

func (a *api) updateMember(req *request, id string) error {
	body := req.readFields("role", "access")
	var member domain.Member
	var err error
	if body.has("access") {
		access := body.access()
		if body.err != nil {
			return body.err
		}
		member, err = a.Directory.ChangeAccess(req.ctx, req.origin(), req.key.Reach.OrgID, id, access)
	} else {
		role := read(body, "role", body.role)
		if body.err != nil {
			return body.err
		}
		member, err = a.Directory.ChangeRole(req.ctx, req.origin(), req.key.Reach.OrgID, id, role)
	}
	return a.answerMember(req, member, err)
}

func (a *api) removeMember(req *request, id string) error {
	return req.answerNothing(a.Directory.RemoveMember(req.ctx, req.origin(), req.key.Reach.OrgID, id))
}

// access returns the access that a body gives by the field access, or by role, the contract's.
// Both must agree.
func (f *fields) access() domain.Access {
	if !f.has("access") {
		return domain.Access(read(f, "role", f.role))
	}
	access := read(f, "access", func(name string) (domain.Access, error) {
		text, err := f.stringField(name)
		if err != nil {
			return "", err
		}
		return domain.ParseAccess(name, shorten(text))
	})
	if f.has("role") {
		role, _ := access.Role()
		f.require(read(f, "role", f.role) == role, domain.Errorf(
			domain.CodeInvalidRequest, "role: is not the role of that access; leave it out",
		))
	}
	return access
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
