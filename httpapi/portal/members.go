package portal

import (
	"net/http"

	"hubcloud/domain"
)

// listLimit is the most of anything that a page lists.
const listLimit = 200

// membersView is the page of an organization's people.
type membersView struct {
	Shell
	People      []memberLine
	HasMore     bool
	Invitations []domain.Invitation
	// Invited is what was typed into the form, with Problem what is wrong with it.
	Invited struct{ Email, Role, Problem string }
}

// memberLine is a member as the visitor may deal with it.
type memberLine struct {
	domain.Member
	// Self says that it is the visitor.
	Self bool
	// Roles are those that the visitor may give; empty when the member is none of the visitor's business.
	Roles []domain.Role
}

// members shows the people of the organization.
func (v *visit) members() error { return v.showMembers(http.StatusOK, membersView{}) }

func (v *visit) showMembers(status int, view membersView) error {
	ctx := v.r.Context()
	people, err := v.p.ReadModels.Members(ctx, v.member.OrgID, listLimit, "")
	if err != nil {
		return err
	}
	invitations, err := v.p.ReadModels.Invitations(ctx, v.member.OrgID, listLimit, "", v.caller.At)
	if err != nil {
		return err
	}
	for _, m := range people.Data {
		view.People = append(view.People, memberLine{Member: m, Self: m.ID == v.member.MemberID, Roles: v.rolesFor(m)})
	}
	view.HasMore, view.Invitations = people.HasMore || invitations.HasMore, invitations.Data
	view.Shell = v.shell("Members", "members")
	v.render(status, "members.html", view)
	return nil
}

// rolesFor gives the roles that the visitor may give a member. The directory decides again: this only leaves out what it would refuse.
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
	_, err := v.p.Directory.ChangeRole(v.r.Context(), v.origin(), v.member.OrgID, v.r.PathValue("member"), domain.Role(v.field("role")))
	if err != nil {
		return err
	}
	v.redirectInOrg("members", "role-changed")
	return nil
}

// confirmRemoval asks whether a member is to be removed, or whether the visitor wants to leave.
func (v *visit) confirmRemoval() error {
	m, err := v.p.ReadModels.Member(v.r.Context(), v.member.OrgID, v.r.PathValue("member"))
	if err != nil {
		return err
	}
	line := memberLine{Member: m, Self: m.ID == v.member.MemberID, Roles: v.rolesFor(m)}
	if len(line.Roles) == 0 {
		return domain.ErrMemberNotFound()
	}
	heading := "Remove a member"
	if line.Self {
		heading = "Leave the organization"
	}
	v.render(http.StatusOK, "member-remove.html", struct {
		Shell
		Person memberLine
	}{v.shell(heading, "members"), line})
	return nil
}

// removeMember ends a membership, the visitor's own or another's.
func (v *visit) removeMember() error {
	id := v.r.PathValue("member")
	if err := v.p.Directory.RemoveMember(v.r.Context(), v.origin(), v.member.OrgID, id); err != nil {
		return err
	}
	if id == v.member.MemberID {
		v.redirect("organizations", "left")
		return nil
	}
	v.redirectInOrg("members", "member-removed")
	return nil
}

// invite has a link mailed that makes its opener a member.
func (v *visit) invite() error {
	var view membersView
	view.Invited.Email, view.Invited.Role = v.field("email"), v.field("role")
	_, err := v.p.Directory.Invite(v.r.Context(), v.origin(), v.member.OrgID, view.Invited.Email, domain.Role(view.Invited.Role))
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
	v.redirectInOrg("members", "invitation-revoked")
	return nil
}
