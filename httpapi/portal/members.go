package portal

import (
	"net/http"

	"hubcloud/domain"
)

// membersView is the page of an organization's people.
type membersView struct {
	Layout
	People      []memberRow
	MorePeople  pager
	Invitations []domain.Invitation
	MoreInvited pager
	// Find is the text that addresses of people must have, and Query the end of addresses that lead
	// back here.
	Find, Query string
	// Role is what is wrong with the role that a member was to get.
	Role struct{ Member, Problem string }
	// Invited is what was typed into the form, with Problem what is wrong with it.
	Invited struct{ Email, Role, Problem string }
}

// memberRow is a member as the visitor may deal with it.
type memberRow struct {
	domain.Member
	// Self says that it is the visitor.
	Self bool
	// Roles are those that the visitor may give; empty when the member is none of the visitor's
	// business.
	Roles []domain.Role
}

// members shows the people of the organization.
func (req *request) members() error { return req.showMembers(http.StatusOK, membersView{}) }

func (req *request) showMembers(status int, view membersView) error {
	ctx := req.http.Context()
	view.Find, view.Query = req.queryValue("find"), req.listQuery()
	people, ways, err := readPage(
		req,
		"members",
		"people",
		func(limit int, after string) (domain.Page[domain.Member], error) {
			return req.portal.ReadModels.FindMembers(ctx, req.member.OrgID, view.Find, limit, after)
		},
		func(m domain.Member) string { return m.ID },
	)
	if err != nil {
		return err
	}
	view.MorePeople = ways
	for _, m := range people {
		view.People = append(view.People, req.memberRow(m))
	}
	view.Invitations, view.MoreInvited, err = readPage(
		req,
		"members",
		"invitations",
		func(limit int, after string) (domain.Page[domain.Invitation], error) {
			return req.portal.ReadModels.Invitations(
				ctx, req.member.OrgID, limit, after, req.info.At,
			)
		},
		func(i domain.Invitation) string { return i.ID },
	)
	if err != nil {
		return err
	}
	view.Layout = req.layout("Members", "members")
	req.render(status, "members.html", view)
	return nil
}

// memberRow gives a member as the visitor may deal with it.
func (req *request) memberRow(m domain.Member) memberRow {
	return memberRow{Member: m, Self: m.ID == req.member.MemberID, Roles: req.rolesFor(m)}
}

// Leavable says whether the visitor may end the membership: everybody the own one.
func (m memberRow) Leavable() bool { return m.Self || len(m.Roles) > 0 }

// rolesFor gives the roles that the visitor may give a member. The directory decides again: this
// only leaves out what it would refuse.
func (req *request) rolesFor(m domain.Member) []domain.Role {
	switch {
	case req.member.Role == domain.RoleOwner:
		return []domain.Role{domain.RoleOwner, domain.RoleAdmin, domain.RoleMember}
	case req.member.Role == domain.RoleAdmin && m.Role != domain.RoleOwner:
		return []domain.Role{domain.RoleAdmin, domain.RoleMember}
	}
	return nil
}

// changeRole gives a member another role.
func (req *request) changeRole() error {
	var view membersView
	view.Role.Member = req.http.PathValue("member")
	_, err := req.portal.Directory.ChangeRole(
		req.http.Context(), req.origin(), req.member.OrgID, view.Role.Member,
		domain.Role(req.formValue("role")),
	)
	if problem, ok := rejectionText(err); ok {
		view.Role.Problem = problem
		return req.showMembers(statusOf(domain.CodeOf(err)), view)
	}
	if err != nil {
		return err
	}
	req.redirectInOrg("members"+req.listQuery(), "role-changed")
	return nil
}

// confirmRemoval asks whether a member is to be removed, or whether the visitor wants to leave.
func (req *request) confirmMemberRemoval() error { return req.showRemoval(http.StatusOK, "") }

// askRemoval asks, and says what kept it from being done.
func (req *request) showRemoval(status int, problem string) error {
	m, err := req.portal.ReadModels.Member(
		req.http.Context(), req.member.OrgID, req.http.PathValue("member"),
	)
	if err != nil {
		return err
	}
	line := req.memberRow(m)
	if !line.Leavable() {
		return errManagersOnly
	}
	heading := "Remove a member"
	if line.Self {
		heading = "Leave the organization"
	}
	req.render(status, "member-remove.html", struct {
		Layout
		Person         memberRow
		Query, Problem string
	}{req.layout(heading, "members"), line, req.listQuery(), problem})
	return nil
}

// removeMember ends a membership, the visitor's own or another's.
func (req *request) removeMember() error {
	id := req.http.PathValue("member")
	err := req.portal.Directory.RemoveMember(req.http.Context(), req.origin(), req.member.OrgID, id)
	if problem, ok := rejectionText(err); ok {
		return req.showRemoval(statusOf(domain.CodeOf(err)), problem)
	}
	if err != nil {
		return err
	}
	if id == req.member.MemberID {
		req.redirect("organizations", "left")
		return nil
	}
	req.redirectInOrg("members"+req.listQuery(), "member-removed")
	return nil
}

// invite has a link mailed that makes its opener a member.
func (req *request) invite() error {
	var view membersView
	view.Invited.Email, view.Invited.Role = req.formValue("email"), req.formValue("role")
	_, err := req.portal.Directory.Invite(
		req.http.Context(), req.origin(), req.member.OrgID, view.Invited.Email,
		domain.Role(view.Invited.Role),
	)
	if problem, ok := rejectionText(err); ok {
		view.Invited.Problem = problem
		return req.showMembers(http.StatusBadRequest, view)
	}
	if err != nil {
		return err
	}
	req.redirectInOrg("members", "invited")
	return nil
}

// revokeInvitation takes an invitation back.
func (req *request) revokeInvitation() error {
	if err := req.portal.Directory.RevokeInvitation(req.http.Context(), req.origin(), req.member.OrgID, req.http.PathValue("invitation")); err != nil {
		return err
	}
	req.redirectInOrg("members"+req.listQuery(), "invitation-revoked")
	return nil
}
