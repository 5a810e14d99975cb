package contract

import (
	"fmt"
	"net/http"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// memberRaces runs conflicting requests about members at the same time. The rules must hold, and
// the answers must agree with the result.
func memberRaces(t *testing.T, c *harness.Target) {
	const pairs = 50
	s := c.OwnService()

	t.Run("owners", func(t *testing.T) {
		// API keys cannot change or remove an owner.
		tenant := c.For(t).Tenant("Races for owners")
		first := owner(tenant)
		for range pairs {
			answers := atOnce(t, 2, func(i int) (harness.Answer, error) {
				if i == 0 {
					return tenant.Try(http.MethodPatch, "/members/"+first.ID, `{"role":"member"}`)
				}
				return tenant.Try(http.MethodDelete, "/members/"+first.ID, nil)
			})
			for _, answer := range answers {
				if answer.Status != http.StatusForbidden || answer.ErrorType() != "forbidden" {
					t.Fatalf("owner: got %d %s, want 403 forbidden", answer.Status, answer.Body)
				}
			}
		}
		if again := owner(tenant); again != first {
			t.Errorf("owner: got %+v, want %+v unchanged", again, first)
		}
	})

	t.Run("a role and a removal", func(t *testing.T) {
		tenant := c.For(t).Tenant("Races for roles")
		for n := range 10 {
			person := joined(t, s, tenant, fmt.Sprintf("role%d@races.example.com", n), "member")
			answers := atOnce(t, 4, func(i int) (harness.Answer, error) {
				if i%2 == 0 {
					return tenant.Try(http.MethodPatch, "/members/"+person.ID, `{"role":"admin"}`)
				}
				return tenant.Try(http.MethodDelete, "/members/"+person.ID, nil)
			})
			removed := 0
			for i, answer := range answers {
				switch {
				case i%2 == 1 && answer.Status == http.StatusNoContent:
					removed++
				case i%2 == 0 && answer.Status == http.StatusOK,
					answer.Status == http.StatusNotFound:
				default:
					t.Errorf(
						"request %d: got %d %s, want success or 404", i, answer.Status, answer.Body,
					)
				}
			}
			if _, found := memberOf(tenant, person.Email); removed != 1 || found {
				t.Errorf(
					"got %d successful removals, still a member: %v; want 1, false", removed, found,
				)
			}
		}
	})

	t.Run("two invitations to one address", func(t *testing.T) {
		tenant := c.For(t).Tenant("Races for addresses")
		for n := range pairs {
			email := fmt.Sprintf("address%d@races.example.com", n)
			answers := atOnce(t, 2, func(i int) (harness.Answer, error) {
				return tenant.Try(
					http.MethodPost, "/invitations",
					map[string]string{"email": email, "role": []string{"admin", "member"}[i]},
				)
			})
			for _, answer := range answers {
				if answer.Status != http.StatusCreated {
					t.Errorf("invite %s: got %d %s, want 201", email, answer.Status, answer.Body)
				}
			}
			found := 0
			for _, i := range listInvitations(tenant) {
				if i.Email == email {
					found++
				}
			}
			if found != 1 {
				t.Errorf("pending invitations to %s: got %d, want 1", email, found)
			}
		}
		// Only one of the links works. The mail with the other may not be sent.
		for n := range 3 {
			email := fmt.Sprintf("address%d@races.example.com", n)
			opened, worked := map[string]bool{}, 0
			streamstest.Eventually(t, "a link that works", func() bool {
				for _, mail := range s.For(t).Mails(email, 1) {
					if opened[mail.Link()] {
						continue
					}
					opened[mail.Link()] = true
					if page := harness.Open(
						t, http.MethodGet, mail.Link(),
					); page.Status == http.StatusOK {
						worked++
					}
				}
				return worked > 0
			})
			if _, found := memberOf(tenant, email); worked != 1 || !found {
				t.Errorf(
					"%s: got %d working links, a member: %v; want 1, true", email, worked, found,
				)
			}
		}
	})

	t.Run("a link opened and revoked", func(t *testing.T) {
		// Either the link was accepted and the revocation finds nothing, or the invitation was
		// revoked and the link does not work.
		tenant := c.For(t).Tenant("Races for links")
		seen := map[int]int{}
		for n := range pairs {
			email := fmt.Sprintf("link%d@races.example.com", n)
			invited, link := invite(s, tenant, email, "member")
			answers := atOnce(t, 2, func(i int) (harness.Answer, error) {
				if i == 0 {
					return harness.Open(t, http.MethodGet, link), nil
				}
				return tenant.Try(http.MethodDelete, "/invitations/"+invited.ID, nil)
			})
			opened, revoked := answers[0].Status, answers[1].Status
			seen[opened]++
			_, isMember := memberOf(tenant, email)
			accepted := opened == http.StatusOK && revoked == http.StatusNotFound && isMember
			rejected := (opened == http.StatusGone || opened == http.StatusNotFound) &&
				revoked == http.StatusNoContent &&
				!isMember
			if !accepted && !rejected || pending(tenant, invited.ID) {
				t.Errorf("open: got %d, revoke: got %d, a member: %v", opened, revoked, isMember)
			}
		}
		t.Logf("opened: %v", seen)
	})

	t.Run("a link opened twice", func(t *testing.T) {
		tenant := c.For(t).Tenant("Races for one link")
		for n := range 15 {
			email := fmt.Sprintf("twice%d@races.example.com", n)
			_, link := invite(s, tenant, email, "member")
			open := func(int) (harness.Answer, error) {
				return harness.Open(t, http.MethodGet, link), nil
			}
			for _, answer := range atOnce(t, 4, open) {
				if answer.Status != http.StatusOK {
					t.Errorf("open link: got %d %s, want 200", answer.Status, answer.Body)
				}
			}
			found := 0
			for _, m := range listMembers(tenant) {
				if m.Email == email {
					found++
				}
			}
			if found != 1 {
				t.Errorf("%s: got %d members, want 1", email, found)
			}
		}
	})
}
