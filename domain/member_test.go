package domain_test

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

// The people of the tests: two owners, an admin, a member, one who is none.
const (
	olga  = "01935f2e-0000-7000-8000-0000000000e1"
	omar  = "01935f2e-0000-7000-8000-0000000000e2"
	ada   = "01935f2e-0000-7000-8000-0000000000e3"
	maxi  = "01935f2e-0000-7000-8000-0000000000e4"
	nemo  = "01935f2e-0000-7000-8000-0000000000e5"
	byKey = "a key"
	byOp  = "the operator"
	byHub = "a hub"
)

var (
	created = domain.OrgCreated{OrgID: orgA, Name: "Acme"}
	owner1  = joined(olga, "olga@example.org", domain.RoleOwner)
	owner2  = joined(omar, "omar@example.org", domain.RoleOwner)
	admin1  = joined(ada, "ada@example.org", domain.RoleAdmin)
	member1 = joined(maxi, "max@example.org", domain.RoleMember)
)

func joined(id, email string, role domain.Role) domain.MemberAdded {
	return domain.MemberAdded{OrgID: orgA, MemberID: id, Email: email, Role: role}
}

func acting(who string) domain.Origin {
	o := origin
	switch who {
	case byKey:
	case byOp:
		o.Actor = domain.Actor{Kind: domain.ActorOperator}
	case byHub:
		o.Actor = domain.Actor{Kind: domain.ActorHub, ID: string(hub)}
	default:
		o.Actor = domain.Actor{Kind: domain.ActorMember, ID: who}
	}
	return o
}

// decidedBy is decided for events of somebody else's.
func decidedBy(
	t *testing.T, o domain.Origin, events []domain.Event, err error, facts []domain.Fact,
	code domain.Code,
) {
	t.Helper()
	for i := range events {
		if events[i].Actor != o.Actor {
			t.Errorf("the event is not of its origin: %#v", events[i])
		}
		events[i].Actor = origin.Actor
	}
	decided(t, events, err, facts, code)
}

func TestWhoMayChangeWhom(t *testing.T) {
	t.Parallel()
	all := fold(t, domain.EvolveOrg, created, owner1, owner2, admin1, member1)
	for who, can := range map[string]struct{ owners, others bool }{
		byKey: {false, true}, byOp: {true, true}, byHub: {false, false},
		olga: {true, true}, ada: {false, true}, maxi: {false, false}, nemo: {false, false},
		"": {false, false},
	} {
		o := acting(who)
		code := func(may bool) domain.Code {
			if may {
				return ""
			}
			return domain.CodeForbidden
		}
		change := func(may bool, member string, role domain.Role) {
			t.Helper()
			events, err := domain.DecideChangeRole(all, o, member, role)
			decidedBy(
				t, o, events, err,
				[]domain.Fact{domain.MemberRoleChanged{OrgID: orgA, MemberID: member, Role: role}},
				code(may),
			)
		}
		remove := func(may bool, member string) {
			t.Helper()
			events, err := domain.DecideRemoveMember(all, o, member)
			decidedBy(
				t, o, events, err,
				[]domain.Fact{domain.MemberRemoved{OrgID: orgA, MemberID: member}}, code(may),
			)
		}
		t.Run("by "+who, func(t *testing.T) {
			change(can.owners, omar, domain.RoleAdmin)
			change(can.owners, omar, domain.RoleMember)
			change(can.owners, ada, domain.RoleOwner)
			change(can.owners, maxi, domain.RoleOwner)
			change(can.others, ada, domain.RoleMember)
			change(can.others, maxi, domain.RoleAdmin)
			remove(can.owners, omar)
			remove(can.others, ada)
			remove(can.others || who == maxi, maxi)

			// Who may not make owners hears that first, whoever the member is: nobody learns from
			// it who is there.
			_, err := domain.DecideChangeRole(all, o, nemo, domain.RoleOwner)
			if want := map[bool]domain.Code{
				true: domain.CodeNotFound, false: domain.CodeForbidden,
			}[can.owners]; domain.CodeOf(err) != want {
				t.Errorf("making nobody an owner: %v, want %s", err, want)
			}
			want := map[bool]domain.Code{
				true: domain.CodeNotFound, false: domain.CodeForbidden,
			}[can.others]
			for _, id := range []string{nemo, "", "*", ">", strings.ToUpper(ada)} {
				_, changed := domain.DecideChangeRole(all, o, id, domain.RoleAdmin)
				_, removed := domain.DecideRemoveMember(all, o, id)
				if domain.CodeOf(changed) != want || domain.CodeOf(removed) != want {
					t.Errorf("%q: %v and %v, want %s", id, changed, removed, want)
				}
			}
			// A role that there is not is refused before anything else.
			for _, role := range []domain.Role{"", "boss", "Admin"} {
				_, err := domain.DecideChangeRole(all, o, ada, role)
				if domain.CodeOf(err) != domain.CodeInvalidRequest ||
					!strings.Contains(err.Error(), "role: ") {
					t.Errorf("role %q: %v", role, err)
				}
			}
		})
	}
}

func TestTheSameRoleIsNoEvent(t *testing.T) {
	t.Parallel()
	all := fold(t, domain.EvolveOrg, created, owner1, admin1)
	events, err := domain.DecideChangeRole(all, origin, ada, domain.RoleAdmin)
	decided(t, events, err, nil, "")
	// Also for the last owner; and still not by a key.
	events, err = domain.DecideChangeRole(all, acting(olga), olga, domain.RoleOwner)
	decidedBy(t, acting(olga), events, err, nil, "")
	events, err = domain.DecideChangeRole(all, origin, olga, domain.RoleOwner)
	decided(t, events, err, nil, domain.CodeForbidden)
}

func TestTheLastOwnerStays(t *testing.T) {
	t.Parallel()
	one := fold(t, domain.EvolveOrg, created, owner1, admin1)
	for _, who := range []string{olga, byOp} {
		_, err := domain.DecideChangeRole(one, acting(who), olga, domain.RoleAdmin)
		if domain.CodeOf(err) != domain.CodeForbidden ||
			!strings.Contains(err.Error(), "last owner") {
			t.Errorf("%s made the last owner an admin: %v", who, err)
		}
		if _, err = domain.DecideRemoveMember(one, acting(who), olga); domain.CodeOf(
			err,
		) != domain.CodeForbidden {
			t.Errorf("%s removed the last owner: %v", who, err)
		}
	}
	two := fold(
		t, domain.EvolveOrg, created, owner1, admin1,
		domain.MemberRoleChanged{OrgID: orgA, MemberID: ada, Role: domain.RoleOwner},
	)
	events, err := domain.DecideRemoveMember(two, acting(olga), olga)
	decidedBy(
		t, acting(olga), events, err,
		[]domain.Fact{domain.MemberRemoved{OrgID: orgA, MemberID: olga}}, "",
	)
	after := fold(
		t, domain.EvolveOrg, created, owner1, owner2,
		domain.MemberRemoved{OrgID: orgA, MemberID: olga},
	)
	if len(after.Members) != 1 || after.Members[0].ID != omar {
		t.Errorf("folded to %+v", after.Members)
	}
}

func TestAccount(t *testing.T) {
	t.Parallel()
	made := domain.AccountCreated{AccountID: olga, Email: "Olga@example.org"}
	decided(
		t, domain.DecideCreateAccount(domain.AccountState{}, origin, olga, "Olga@example.org"), nil,
		[]domain.Fact{made}, "",
	)
	state := fold(t, domain.EvolveAccount, made)
	if want := (domain.AccountState{
		ID: olga, Email: "Olga@example.org", CreatedAt: origin.At,
	}); state != want ||
		!state.Exists() {
		t.Errorf("folded to %#v", state)
	}
	decided(t, domain.DecideCreateAccount(state, origin, omar, "olga@example.org"), nil, nil, "")
	// It never changes: accounts are found by it.
	const want = "0450de3d14dfa2d080b7743d08227dbfe9e1f0515b84a9af58451d63b07148f5"
	if key := domain.AccountKey(" OLGA@Example.org "); key != want {
		t.Errorf("the key of the account is %s", key)
	}
}

// TestEveryMemberMayLeave: a plain member could not, and had to ask an owner to be removed. Nobody
// else may be removed that way, and the last owner stays.
func TestEveryMemberMayLeave(t *testing.T) {
	t.Parallel()
	all := fold(t, domain.EvolveOrg, created, owner1, admin1, member1)
	for _, who := range []string{ada, maxi} {
		events, err := domain.DecideRemoveMember(all, acting(who), who)
		decidedBy(
			t, acting(who), events, err,
			[]domain.Fact{domain.MemberRemoved{OrgID: orgA, MemberID: who}}, "",
		)
	}
	for who, code := range map[string]domain.Code{
		olga: domain.CodeForbidden, nemo: domain.CodeForbidden,
	} {
		if _, err := domain.DecideRemoveMember(all, acting(who), who); domain.CodeOf(err) != code {
			t.Errorf("%s leaves: %v", who, err)
		}
	}
	// A key, a hub and the service with a member's id are no member.
	for _, kind := range []string{domain.ActorHub, "", "other"} {
		o := acting(byHub)
		o.Actor = domain.Actor{Kind: kind, ID: maxi}
		if _, err := domain.DecideRemoveMember(all, o, maxi); domain.CodeOf(
			err,
		) != domain.CodeForbidden {
			t.Errorf("a %q leaves: %v", kind, err)
		}
	}
}
