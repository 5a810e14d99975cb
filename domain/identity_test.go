package domain_test

import (
	"testing"

	"hubcloud/domain"
)

// TestBindIdentity: an account belongs to the first person of an issuer who signs in, and to
// another one only if that is allowed. It is found by the identity that it is bound to.
func TestBindIdentity(t *testing.T) {
	t.Parallel()
	made := domain.AccountCreated{AccountID: olga, Email: "Olga@example.org"}
	first := domain.Identity{Issuer: "https://login.example.org", Subject: "1"}
	second := domain.Identity{Issuer: first.Issuer, Subject: "2"}
	moved := domain.Identity{Issuer: "https://id.example.org", Subject: "1"}
	bound := func(i domain.Identity) domain.AccountIdentityBound {
		return domain.AccountIdentityBound{AccountID: olga, Email: made.Email, Identity: i}
	}
	fresh := fold(t, domain.EvolveAccount, made)
	taken := fold(t, domain.EvolveAccount, made, bound(first))
	for name, try := range map[string]struct {
		state   domain.AccountState
		who     domain.Identity
		replace bool
		want    []domain.Fact
		code    domain.Code
	}{
		"the first":                  {fresh, first, false, []domain.Fact{bound(first)}, ""},
		"again":                      {taken, first, false, nil, ""},
		"another":                    {taken, second, false, nil, domain.CodeForbidden},
		"another, of another issuer": {taken, moved, false, []domain.Fact{bound(moved)}, ""},
		"another, allowed":           {taken, second, true, []domain.Fact{bound(second)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := domain.DecideBindIdentity(try.state, origin, try.who, try.replace)
			checkDecision(t, events, err, try.want, try.code)
		})
	}
	checkDecision(
		t, domain.DecideFindByIdentity(domain.AccountState{}, origin, taken), nil,
		[]domain.Fact{bound(first)}, "",
	)
	found := fold(t, domain.EvolveAccount, bound(first))
	checkDecision(t, domain.DecideFindByIdentity(found, origin, taken), nil, nil, "")
	if first.Key() == second.Key() || first.Key() == moved.Key() {
		t.Error("two identities have the same key")
	}
}

// TestGroupAccess: groups add, change and remove the memberships that groups gave, and no others.
func TestGroupAccess(t *testing.T) {
	t.Parallel()
	const id, email = "01935f2e-0000-7000-8000-0000000000ee", "gus@example.org"
	byGroups := func(access domain.Access) domain.MemberAdded {
		role, viewOnly := access.Role()
		return domain.MemberAdded{
			OrgID: orgA, MemberID: id, Email: email, Role: role, ViewOnly: viewOnly, FromGroups: true,
		}
	}
	removed := domain.MemberRemoved{OrgID: orgA, MemberID: id}
	invitation := invited(1, "Gus@Example.org", domain.RoleAdmin)
	const admin, viewer = domain.AccessAdmin, domain.AccessViewer
	member := []domain.Fact{created, owner1, byGroups(admin)}
	byHand := []domain.Fact{created, owner1, joined(id, email, domain.RoleAdmin)}
	last := []domain.Fact{created, byGroups(domain.AccessOwner)}
	for name, try := range map[string]struct {
		before []domain.Fact
		access domain.Access
		want   []domain.Fact
		code   domain.Code
	}{
		"a stranger": {member[:2], "", nil, ""},
		"added":      {member[:2], admin, []domain.Fact{byGroups(admin)}, ""},
		"invited before": {[]domain.Fact{created, owner1, invitation}, viewer, []domain.Fact{
			domain.MemberInvitationRevoked{OrgID: orgA, InvitationID: invitation.InvitationID},
			byGroups(viewer),
		}, ""},
		"unchanged": {member, admin, nil, ""},
		"changed": {member, viewer, []domain.Fact{
			domain.MemberRoleChanged{
				OrgID: orgA, MemberID: id, Role: domain.RoleMember, ViewOnly: true,
			},
		}, ""},
		"removed":               {member, "", []domain.Fact{removed}, ""},
		"the last owner":        {last, "", nil, ""},
		"the last owner, less":  {last, viewer, nil, ""},
		"by hand":               {byHand, "", nil, ""},
		"by hand, less":         {byHand, viewer, nil, ""},
		"unknown organization":  {nil, admin, nil, domain.CodeNotFound},
		"no organization, gone": {nil, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			org := fold(t, domain.EvolveOrg, try.before...)
			o := origin
			o.Actor = domain.Actor{Kind: domain.ActorService}
			events, err := domain.DecideGroupAccess(org, o, id, email, try.access)
			checkDecisionBy(t, o, events, err, try.want, try.code)
		})
	}
}
