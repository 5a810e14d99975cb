package domain_test

import (
	"testing"

	"hubcloud/domain"
)

// TestNameMember: members name themselves, and nobody else does.
func TestNameMember(t *testing.T) {
	t.Parallel()
	state := fold(t, domain.EvolveOrg, created, owner1, member1)
	named := domain.MemberNamed{OrgID: orgA, MemberID: maxi, Name: "Max"}
	events, err := domain.DecideNameMember(state, acting(maxi), "Max")
	checkDecisionBy(t, acting(maxi), events, err, []domain.Fact{named}, "")

	state = fold(t, domain.EvolveOrg, created, owner1, member1, named)
	member, _ := state.Member(maxi)
	if member.DisplayName() != "Max" {
		t.Errorf("DisplayName(): got %q, want Max", member.DisplayName())
	}
	if owner, _ := state.Member(olga); owner.DisplayName() != "olga@example.org" {
		t.Errorf("DisplayName(): got %q, want the address", owner.DisplayName())
	}
	events, err = domain.DecideNameMember(state, acting(maxi), "Max")
	checkDecision(t, events, err, nil, "")
	for _, who := range []string{nemo, byKey, byOp} {
		events, err = domain.DecideNameMember(state, acting(who), "Max")
		checkDecision(t, events, err, nil, domain.CodeNotFound)
	}
}

// TestViewers: a member becomes one who may only look, and loses that with another role. The
// contract's role alone leaves it.
func TestViewers(t *testing.T) {
	t.Parallel()
	limited := domain.MemberRoleChanged{
		OrgID: orgA, MemberID: maxi, Role: domain.RoleMember, ViewOnly: true,
	}
	state := fold(t, domain.EvolveOrg, created, owner1, admin1, member1)
	events, err := domain.DecideChangeAccess(state, acting(ada), maxi, domain.AccessViewer)
	checkDecisionBy(t, acting(ada), events, err, []domain.Fact{limited}, "")
	events, err = domain.DecideChangeAccess(state, acting(maxi), maxi, domain.AccessViewer)
	checkDecision(t, events, err, nil, domain.CodeForbidden)
	events, err = domain.DecideChangeAccess(state, acting(olga), olga, domain.AccessViewer)
	checkDecision(t, events, err, nil, domain.CodeForbidden)
	events, err = domain.DecideChangeAccess(state, acting(olga), maxi, "guest")
	checkDecision(t, events, err, nil, domain.CodeInvalidRequest)

	state = fold(t, domain.EvolveOrg, created, owner1, member1, limited)
	events, err = domain.DecideChangeAccess(state, acting(olga), maxi, domain.AccessViewer)
	checkDecision(t, events, err, nil, "")
	events, err = domain.DecideChangeRole(state, acting(olga), maxi, domain.RoleMember)
	checkDecision(t, events, err, nil, "")
	state = fold(t, domain.EvolveOrg, created, owner1, member1, limited,
		domain.MemberRoleChanged{OrgID: orgA, MemberID: maxi, Role: domain.RoleAdmin},
		domain.MemberRoleChanged{OrgID: orgA, MemberID: maxi, Role: domain.RoleMember})
	if member, _ := state.Member(maxi); member.Access() != domain.AccessMember {
		t.Errorf("a member who was an admin: got %s, want the limit gone", member.Access())
	}
}
