package domain_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

// Whatever happens to an organization's people, in whatever order and by whomever: it has an owner,
// one member and one open invitation an address and none of a member's; keys and admins leave
// owners alone; a link lets in once, in time and only while it is in force; and states that were
// handed out do not change.
func TestOrgRulesHoldOverEveryHistory(t *testing.T) {
	t.Parallel()
	emails := []string{
		"olga@example.org", "OLGA@Example.ORG", "ann@example.org", "Ann@example.org",
		"bob@example.org",
		"jos\u00e9@example.org", "JOSE\u0301@example.org",
	}
	begun := fold(t, domain.EvolveOrg, created, owner1)
	rapid.Check(t, func(t *rapid.T) {
		state, o := begun, origin
		open := map[int]bool{} // the links that are in force, but for their time
		ends := map[int]time.Time{}
		members := func() []string {
			ids := []string{nemo}
			for _, m := range state.Members {
				ids = append(ids, m.ID)
			}
			return ids
		}
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for step := range steps {
			o.At = o.At.Add(time.Duration(rapid.IntRange(0, 48).Draw(t, "hours")) * time.Hour)
			o.Actor = rapid.SampledFrom([]domain.Actor{
				{Kind: domain.ActorKey, ID: "0123456789AB"}, {Kind: domain.ActorOperator},
				{Kind: domain.ActorMember, ID: rapid.SampledFrom(members()).Draw(t, "actor")},
			}).Draw(t, "kind")
			role := rapid.SampledFrom([]domain.Role{
				domain.RoleOwner, domain.RoleAdmin, domain.RoleMember,
			}).
				Draw(t, "role")
			before, copied := state, cloneOrg(state)
			actor, _ := before.Member(o.Actor.ID)
			mayOwners := o.Actor.Kind == domain.ActorOperator || actor.Role == domain.RoleOwner
			var events []domain.Event
			var err error
			n := rapid.IntRange(0, max(step-1, 0)).Draw(t, "link")
			member := rapid.SampledFrom(members()).Draw(t, "member")
			switch rapid.IntRange(0, 5).Draw(t, "command") {
			case 0, 1:
				email := rapid.SampledFrom(emails).Draw(t, "email")
				if events, err = domain.DecideInvite(state, o, invite(step, email, role)); err == nil {
					for n := range open {
						if i, ok := state.Invitation(invitationID(n)); ok &&
							i.Address == domain.NormalizeEmail(email) {
							delete(open, n)
						}
					}
					open[step], ends[step] = true, o.At.Add(ttl)
				}
			case 2:
				if events, err = domain.DecideRevokeInvitation(state, o, invitationID(n)); err == nil {
					if !open[n] || !o.At.Before(ends[n]) {
						t.Fatal("an invitation was revoked that is not pending")
					}
					delete(open, n)
				}
			case 3:
				var acceptance domain.Acceptance
				id := fmt.Sprintf("01935f2e-0000-7000-8000-00000002%04d", step)
				events, acceptance, err = domain.DecideAcceptInvitation(state, o, link(n), id)
				switch in := open[n] && o.At.Before(ends[n]); {
				case in && (err != nil || acceptance.MemberID != id || acceptance.Already):
					t.Fatalf("a link in force lets nobody in: %+v, %v", acceptance, err)
				case !in && len(events) > 0:
					t.Fatal("a link lets somebody in that is not in force")
				case in:
					delete(open, n)
				case err == nil && !acceptance.Already:
					t.Fatalf("nothing happened: %+v", acceptance)
				}
			case 4:
				events, err = domain.DecideChangeRole(state, o, member, role)
			case 5:
				events, err = domain.DecideRemoveMember(state, o, member)
			}
			if err != nil {
				if len(events) > 0 {
					t.Fatal("refused, and decided")
				}
				continue
			}
			for _, e := range events {
				if state, err = domain.EvolveOrg(state, e); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(before, copied) {
				t.Fatal("a state that was handed out has changed")
			}
			if !mayOwners && !slices.Equal(owners(before), owners(state)) {
				t.Fatalf("%+v has changed the owners", o.Actor)
			}
			checkOrg(t, state)
		}
	})
}

func cloneOrg(s domain.OrgState) domain.OrgState {
	s.Members, s.Invitations = slices.Clone(s.Members), slices.Clone(s.Invitations)
	return s
}

func owners(s domain.OrgState) (ids []string) {
	for _, m := range s.Members {
		if m.Role == domain.RoleOwner {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func checkOrg(t *rapid.T, s domain.OrgState) {
	t.Helper()
	if len(owners(s)) == 0 {
		t.Fatal("no owner is left")
	}
	ids, addresses := map[string]bool{}, map[string]bool{}
	for _, m := range s.Members {
		if ids[m.ID] || addresses[domain.NormalizeEmail(m.Email)] || m.JoinedAt.IsZero() {
			t.Fatalf("members are %+v", s.Members)
		}
		ids[m.ID], addresses[domain.NormalizeEmail(m.Email)] = true, true
	}
	for _, i := range s.Invitations {
		if ids[i.ID] || addresses[domain.NormalizeEmail(i.Email)] || i.Role == domain.RoleOwner {
			t.Fatalf("members are %+v, invitations %+v", s.Members, s.Invitations)
		}
		ids[i.ID], addresses[domain.NormalizeEmail(i.Email)] = true, true
	}
}
