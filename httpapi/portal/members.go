package portal

import (
	"net/http"

	"hubcloud/domain"
)

// membersView is the page of an organization's people.
type membersView struct {
	Shell
	People      []memberLine
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

// memberLine is a member as the visitor may deal with it.
type memberLine struct {
	domain.Member
	// Self says that it is the visitor.
	Self bool
	// Roles are those that the visitor may give; empty when the member is none of the visitor's
	// business.
	Roles []domain.Role
}

// members shows the people of the organization.
func (v *visit) members() error { return v.showMembers(http.StatusOK, membersView{}) }

func (v *visit) showMembers(status int, view membersView) error {
	ctx := v.r.Context()
	view.Find, view.Query = v.asked("find"), v.listQuery()
	people, ways, err := readPage(
		v,
		"members",
		"people",
		func(limit int, after string) (domain.Page[domain.Member], error) {
			return v.p.ReadModels.FindMembers(ctx, v.member.OrgID, view.Find, limit, after)
		},
		func(m domain.Member) string { return m.ID },
	)
	if err != nil {
		return err
	}
	view.MorePeople = ways
	for _, m := range people {
		view.People = append(view.People, v.memberLine(m))
	}
	view.Invitations, view.MoreInvited, err = readPage(
		v,
		"members",
		"invitations",
		func(limit int, after string) (domain.Page[domain.Invitation], error) {
			return v.p.ReadModels.Invitations(ctx, v.member.OrgID, limit, after, v.caller.At)
		},
		func(i domain.Invitation) string { return i.ID },
	)
	if err != nil {
		return err
	}
	view.Shell = v.shell("Members", "members")
	v.render(status, "members.html", view)
	return nil
}

// memberLine gives a member as the visitor may deal with it.
func (v *visit) memberLine(m domain.Member) memberLine {
	return memberLine{Member: m, Self: m.ID == v.member.MemberID, Roles: v.rolesFor(m)}
}

// Leavable says whether the visitor may end the membership: everybody the own one.
func (m memberLine) Leavable() bool { return m.Self || len(m.Roles) > 0 }

// rolesFor gives the roles that the visitor may give a member. The directory decides again: this
// only leaves out what it would refuse.
func (v *visit) rolesFor(m domain.Member) []domain.Role {
	switch {
	case v.member.Role == domain.RoleOwner:
		return []domain.Role{domain.RoleOwner, domain.RoleAdmin, domain.RoleMember}
	case v.member.Role == domain.RoleAdmin && m.Role != domain.RoleOwner:
		return []domain.Role{domain.RoleAdmin, domain.RoleMember}
	}
	return nil
}

// changeRole gives a member another role.
func (v *visit) changeRole() error {
	var view membersView
	view.Role.Member = v.r.PathValue("member")
	_, err := v.p.Directory.ChangeRole(
		v.r.Context(), v.origin(), v.member.OrgID, view.Role.Member, domain.Role(v.field("role")),
	)
	if problem, ok := refusalText(err); ok {
		view.Role.Problem = problem
		return v.showMembers(statusOf(domain.CodeOf(err)), view)
	}
	if err != nil {
		return err
	}
	v.redirectInOrg("members"+v.listQuery(), "role-changed")
	return nil
}

// confirmRemoval asks whether a member is to be removed, or whether the visitor wants to leave.
func (v *visit) confirmRemoval() error { return v.askRemoval(http.StatusOK, "") }

// askRemoval asks, and says what kept it from being done.
func (v *visit) askRemoval(status int, problem string) error {
	m, err := v.p.ReadModels.Member(v.r.Context(), v.member.OrgID, v.r.PathValue("member"))
	if err != nil {
		return err
	}
	line := v.memberLine(m)
	if !line.Leavable() {
		return errNotManaged
	}
	heading := "Remove a member"
	if line.Self {
		heading = "Leave the organization"
	}
	v.render(status, "member-remove.html", struct {
		Shell
		Person         memberLine
		Query, Problem string
	}{v.shell(heading, "members"), line, v.listQuery(), problem})
	return nil
}

// removeMember ends a membership, the visitor's own or another's.
func (v *visit) removeMember() error {
	id := v.r.PathValue("member")
	err := v.p.Directory.RemoveMember(v.r.Context(), v.origin(), v.member.OrgID, id)
	if problem, ok := refusalText(err); ok {
		return v.askRemoval(statusOf(domain.CodeOf(err)), problem)
	}
	if err != nil {
		return err
	}
	if id == v.member.MemberID {
		v.redirect("organizations", "left")
		return nil
	}
	v.redirectInOrg("members"+v.listQuery(), "member-removed")
	return nil
}

// invite has a link mailed that makes its opener a member.
func (v *visit) invite() error {
	var view membersView
	view.Invited.Email, view.Invited.Role = v.field("email"), v.field("role")
	_, err := v.p.Directory.Invite(
		v.r.Context(), v.origin(), v.member.OrgID, view.Invited.Email,
		domain.Role(view.Invited.Role),
	)
	if problem, ok := refusalText(err); ok {
		view.Invited.Problem = problem
		return v.showMembers(http.StatusBadRequest, view)
	}
	if err != nil {
		return err
	}
	v.redirectInOrg("members", "invited")
	return nil
}

// revokeInvitation takes an invitation back.
func (v *visit) revokeInvitation() error {
	if err := v.p.Directory.RevokeInvitation(v.r.Context(), v.origin(), v.member.OrgID, v.r.PathValue("invitation")); err != nil {
		return err
	}
	v.redirectInOrg("members"+v.listQuery(), "invitation-revoked")
	return nil
}
