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

// After any sequence of commands by any actors: an organization has an owner; an address has at
// most one member or invitation; only owners and operators have changed the owners; a link was
// accepted once, and only before it expired or was revoked. States that were returned do not
// change.
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
		open := map[int]bool{} // links that were not used, revoked or replaced; they may be expired
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
			role := rapid.SampledFrom(
				[]domain.Role{domain.RoleOwner, domain.RoleAdmin, domain.RoleMember},
			).Draw(t, "role")
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
				events, err = domain.DecideInvite(state, o, invite(step, email, role))
				if err == nil {
					for n := range open {
						if i, ok := state.Invitation(invitationID(n)); ok && i.Address == domain.NormalizeEmail(email) {
							delete(open, n)
						}
					}
					open[step], ends[step] = true, o.At.Add(ttl)
				}
			case 2:
				events, err = domain.DecideRevokeInvitation(state, o, invitationID(n))
				if err == nil {
					if !open[n] || !o.At.Before(ends[n]) {
						t.Fatal("revoke an invitation that is not pending: got no error")
					}
					delete(open, n)
				}
			case 3:
				var acceptance domain.Acceptance
				id := fmt.Sprintf("01935f2e-0000-7000-8000-00000002%04d", step)
				events, acceptance, err = domain.DecideAcceptInvitation(state, o, link(n), id)
				switch valid := open[n] && o.At.Before(ends[n]); {
				case valid && (err != nil || acceptance.MemberID != id || acceptance.Already):
					t.Fatalf(
						"accept a valid link: got %+v, %v, want member %s", acceptance, err, id,
					)
				case !valid && len(events) > 0:
					t.Fatalf("accept an invalid link: got events %v, want none", events)
				case valid:
					delete(open, n)
				case err == nil && !acceptance.Already:
					t.Fatalf(
						"accept an invalid link: got %+v, want an error or Already", acceptance,
					)
				}
			case 4:
				events, err = domain.DecideChangeRole(state, o, member, role)
			case 5:
				events, err = domain.DecideRemoveMember(state, o, member)
			}
			if err != nil {
				if len(events) > 0 {
					t.Fatalf("got events %v with error %v, want none", events, err)
				}
				continue
			}
			for _, e := range events {
				if state, err = domain.EvolveOrg(state, e); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(before, copied) {
				t.Fatalf("a returned state has changed: got %#v, want %#v", before, copied)
			}
			if !mayOwners && !slices.Equal(owners(before), owners(state)) {
				t.Fatalf(
					"actor %+v changed the owners from %v to %v", o.Actor, owners(before),
					owners(state),
				)
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

// checkOrg fails unless the organization has an owner, and no address and no id twice.
func checkOrg(t *rapid.T, s domain.OrgState) {
	t.Helper()
	if len(owners(s)) == 0 {
		t.Fatal("got no owner, want at least one")
	}
	ids, addresses := map[string]bool{}, map[string]bool{}
	for _, m := range s.Members {
		if ids[m.ID] || addresses[domain.NormalizeEmail(m.Email)] || m.JoinedAt.IsZero() {
			t.Fatalf("got members %+v, want each id and address once", s.Members)
		}
		ids[m.ID], addresses[domain.NormalizeEmail(m.Email)] = true, true
	}
	for _, i := range s.Invitations {
		if ids[i.ID] || addresses[domain.NormalizeEmail(i.Email)] || i.Role == domain.RoleOwner {
			t.Fatalf(
				"got members %+v, invitations %+v, want each id and address once",
				s.Members, s.Invitations,
			)
		}
		ids[i.ID], addresses[domain.NormalizeEmail(i.Email)] = true, true
	}
}
