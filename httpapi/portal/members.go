package portal

import (
	"net/http"

	"hubcloud/domain"
)

// membersView is the page of an organization's members and invitations.
type membersView struct {
	Layout
	People      []memberRow
	MorePeople  pager
	Invitations []invitationRow
	MoreInvited pager
	// Find is the text that addresses must contain. Query is the list query of links and forms that
	// return to this page.
	Find, Query string
	// Role is a rejected change of role.
	Role struct{ Member, Problem string }
	// Invited is the rejected form of an invitation.
	Invited struct{ Email, Role, Problem string }
}

// invitationRow is a pending invitation.
type invitationRow struct {
	domain.Invitation
	Access domain.Access
}

// memberRow is a member.
type memberRow struct {
	domain.Member
	// Self reports whether the member is the person who is signed in.
	Self bool
	// Name is what the member chose to be called; "" for the address.
	Name string
	// Access is what the member may do.
	Access domain.Access
	// Groups is the name of the identity provider if the member's groups there gave the membership and
	// give it again; "" otherwise.
	Groups string
	// Roles are what the person who is signed in may let the member do; nil for none.
	Roles []domain.Access
}

// members shows the people of the organization.
func (req *request) members() error { return req.showMembers(http.StatusOK, membersView{}) }

func (req *request) showMembers(status int, view membersView) error {
	view.Find, view.Query = req.queryValue("find"), req.listQuery()
	people, links, err := readPage(
		req,
		"members",
		"people",
		func(limit int, after string) (domain.Page[domain.Member], error) {
			return req.ReadModels.FindMembers(req.ctx, req.org, view.Find, limit, after)
		},
		func(m domain.Member) string { return m.ID },
	)
	if err != nil {
		return err
	}
	view.MorePeople = links
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return err
	}
	for _, m := range people {
		view.People = append(view.People, req.memberRow(org, m))
	}
	invitations, links, err := readPage(
		req,
		"members",
		"invitations",
		func(limit int, after string) (domain.Page[domain.Invitation], error) {
			return req.ReadModels.Invitations(req.ctx, req.org, limit, after, req.info.At)
		},
		func(i domain.Invitation) string { return i.ID },
	)
	if err != nil {
		return err
	}
	view.MoreInvited = links
	for _, i := range invitations {
		known, _ := org.Invitation(i.ID)
		view.Invitations = append(
			view.Invitations, invitationRow{i, domain.AccessOf(i.Role, known.ViewOnly)},
		)
	}
	view.Layout = req.layout("People", "people")
	if invited, ok := org.Invitation(view.noticeAbout); ok && view.Notice != "" {
		view.Notice = "Invitation sent to " + domain.PlainLine(invited.Email) + "."
	}
	req.render(status, "members.html", view)
	return nil
}

func (req *request) memberRow(org domain.OrgState, m domain.Member) memberRow {
	known, _ := org.Member(m.ID)
	groups := ""
	if known.FromGroups && req.Provider != nil {
		groups = req.Provider.Name()
	}
	return memberRow{
		Member: m, Self: m.ID == req.member.MemberID, Name: known.Name,
		Access: domain.AccessOf(m.Role, known.ViewOnly), Groups: groups, Roles: req.rolesFor(m),
	}
}

// Removable reports whether the person who is signed in may end the membership.
func (m memberRow) Removable() bool { return m.Self || len(m.Roles) > 0 }

// rolesFor returns what the person who is signed in may let a member do. It only decides what the
// page offers; the directory decides what is allowed.
func (req *request) rolesFor(m domain.Member) []domain.Access {
	all := []domain.Access{
		domain.AccessOwner, domain.AccessAdmin, domain.AccessMember, domain.AccessViewer,
	}
	switch {
	case req.member.Role == domain.RoleOwner:
		return all
	case req.member.Role == domain.RoleAdmin && m.Role != domain.RoleOwner:
		return all[1:]
	}
	return nil
}

// changeRole changes a member's role.
func (req *request) changeRole() error {
	var view membersView
	view.Role.Member = req.http.PathValue("member")
	_, err := req.Directory.ChangeAccess(
		req.ctx, req.origin(), req.org, view.Role.Member, domain.Access(req.formValue("role")),
	)
	again := func(_ int, problem string) error {
		view.Role.Problem = problem
		return req.showMembers(statusOf(domain.CodeOf(err)), view)
	}
	return req.finishForm(err, "members"+req.listQuery(), "role-changed", again)
}

// confirmMemberRemoval shows the page that confirms removing a member or leaving.
func (req *request) confirmMemberRemoval() error { return req.showRemoval(http.StatusOK, "") }

// showRemoval shows the confirmation page. problem is why a removal was rejected; "" for none.
func (req *request) showRemoval(status int, problem string) error {
	m, err := req.ReadModels.Member(req.ctx, req.org, req.http.PathValue("member"))
	if err != nil {
		return err
	}
	org, err := req.Directory.Org(req.ctx, req.org)
	if err != nil {
		return err
	}
	row := req.memberRow(org, m)
	if !row.Removable() {
		return errManagersOnly
	}
	heading := "Remove member"
	if row.Self {
		heading = "Leave organization"
	}
	req.render(status, "member-remove.html", struct {
		Layout
		Person         memberRow
		Query, Problem string
	}{req.layout(heading, "people"), row, req.listQuery(), problem})
	return nil
}

// removeMember removes a member, or lets the person who is signed in leave.
func (req *request) removeMember() error {
	id := req.http.PathValue("member")
	err := req.Directory.RemoveMember(req.ctx, req.origin(), req.org, id)
	if err == nil && id == req.member.MemberID {
		req.redirect("organizations", "left")
		return nil
	}
	again := func(_ int, problem string) error {
		return req.showRemoval(statusOf(domain.CodeOf(err)), problem)
	}
	return req.finishForm(err, "members"+req.listQuery(), "member-removed", again)
}

// invite sends an invitation.
func (req *request) invite() error {
	var view membersView
	view.Invited.Email = domain.PastedEmail(req.formValue("email"))
	view.Invited.Role = req.formValue("role")
	invited, err := req.Directory.Invite(
		req.ctx, req.origin(), req.org, view.Invited.Email, domain.Access(view.Invited.Role),
	)
	return req.finishForm(err, "members", "invited "+invited.ID, func(_ int, problem string) error {
		view.Invited.Problem = problem
		return req.showMembers(http.StatusBadRequest, view)
	})
}

// revokeInvitation withdraws an invitation.
func (req *request) revokeInvitation() error {
	id := req.http.PathValue("invitation")
	err := req.Directory.RevokeInvitation(req.ctx, req.origin(), req.org, id)
	req.offerUndo(err, "members"+req.listQuery(), nil)
	return req.finish(err, "members"+req.listQuery(), "invitation-revoked")
}
