package domain_test

import (
	"strings"
	"testing"

	"hubcloud/domain"
)

// The actors of the tests: two owners, an admin, a member, a person who is no member, and others.
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

// checkDecisionBy is checkDecision for events of the actor of o.
func checkDecisionBy(
	t *testing.T, o domain.Origin, events []domain.Event, err error, facts []domain.Fact,
	code domain.Code,
) {
	t.Helper()
	for i := range events {
		if events[i].Actor != o.Actor {
			t.Errorf("got actor %+v, want %+v", events[i].Actor, o.Actor)
		}
		events[i].Actor = origin.Actor
	}
	checkDecision(t, events, err, facts, code)
}

func TestManagingMembers(t *testing.T) {
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
			checkDecisionBy(
				t, o, events, err,
				[]domain.Fact{domain.MemberRoleChanged{OrgID: orgA, MemberID: member, Role: role}},
				code(may),
			)
		}
		remove := func(may bool, member string) {
			t.Helper()
			events, err := domain.DecideRemoveMember(all, o, member)
			checkDecisionBy(
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

			// An actor that may not make owners gets forbidden also for an unknown member, so that
			// the error does not reveal who is a member.
			_, err := domain.DecideChangeRole(all, o, nemo, domain.RoleOwner)
			if want := map[bool]domain.Code{
				true: domain.CodeNotFound, false: domain.CodeForbidden,
			}[can.owners]; domain.CodeOf(err) != want {
				t.Errorf("make an unknown member an owner: got %v, want %s", err, want)
			}
			want := map[bool]domain.Code{
				true: domain.CodeNotFound, false: domain.CodeForbidden,
			}[can.others]
			for _, id := range []string{nemo, "", "*", ">", strings.ToUpper(ada)} {
				_, changed := domain.DecideChangeRole(all, o, id, domain.RoleAdmin)
				_, removed := domain.DecideRemoveMember(all, o, id)
				if domain.CodeOf(changed) != want || domain.CodeOf(removed) != want {
					t.Errorf(
						"member %q: change got %v, removal got %v, want %s", id, changed, removed,
						want,
					)
				}
			}
			// An unknown role is rejected before anything else.
			for _, role := range []domain.Role{"", "boss", "Admin"} {
				_, err := domain.DecideChangeRole(all, o, ada, role)
				if domain.CodeOf(err) != domain.CodeInvalidRequest || !strings.Contains(err.Error(), "role: ") {
					t.Errorf("role %q: got %v, want invalid_request with the field", role, err)
				}
			}
		})
	}
}

func TestTheSameRoleIsNoEvent(t *testing.T) {
	t.Parallel()
	all := fold(t, domain.EvolveOrg, created, owner1, admin1)
	events, err := domain.DecideChangeRole(all, origin, ada, domain.RoleAdmin)
	checkDecision(t, events, err, nil, "")
	// The last owner can stay an owner; a key is forbidden even this.
	events, err = domain.DecideChangeRole(all, acting(olga), olga, domain.RoleOwner)
	checkDecisionBy(t, acting(olga), events, err, nil, "")
	events, err = domain.DecideChangeRole(all, origin, olga, domain.RoleOwner)
	checkDecision(t, events, err, nil, domain.CodeForbidden)
}

func TestAccount(t *testing.T) {
	t.Parallel()
	made := domain.AccountCreated{AccountID: olga, Email: "Olga@example.org"}
	checkDecision(
		t, domain.DecideCreateAccount(domain.AccountState{}, origin, olga, "Olga@example.org"), nil,
		[]domain.Fact{made}, "",
	)
	state := fold(t, domain.EvolveAccount, made)
	if want := (domain.AccountState{
		ID: olga, Email: "Olga@example.org", CreatedAt: origin.At,
	}); state != want ||
		!state.Exists() {
		t.Errorf("folded to %#v, want %#v", state, want)
	}
	checkDecision(
		t, domain.DecideCreateAccount(state, origin, omar, "olga@example.org"), nil, nil, "",
	)
	// Accounts are stored under their keys, so the key of an address must never change.
	const want = "0450de3d14dfa2d080b7743d08227dbfe9e1f0515b84a9af58451d63b07148f5"
	if key := domain.AccountKey(" OLGA@Example.org "); key != want {
		t.Errorf("AccountKey: got %s, want %s", key, want)
	}
}

// Only the kind member makes the id a member's: an actor of another kind does not leave as a member does
// (TestManagingMembers).
func TestOthersDoNotLeaveAsAMember(t *testing.T) {
	t.Parallel()
	all := fold(t, domain.EvolveOrg, created, owner1, admin1, member1)
	for _, kind := range []string{domain.ActorHub, "", "other"} {
		o := acting(byHub)
		o.Actor = domain.Actor{Kind: kind, ID: maxi}
		if _, err := domain.DecideRemoveMember(all, o, maxi); domain.CodeOf(
			err,
		) != domain.CodeForbidden {
			t.Errorf("an actor of kind %q leaves: got %v, want forbidden", kind, err)
		}
	}
}
