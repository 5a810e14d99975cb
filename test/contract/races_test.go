package contract

import (
	"fmt"
	"net/http"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// memberRaces lets 50 pairs of requests race on each rule about people: no rule breaks, and what is
// answered is what is.
func memberRaces(t *testing.T, c *harness.Target) {
	const pairs = 50
	s := c.OwnService()

	t.Run("owners", func(t *testing.T) {
		// An organization's owner is out of an API key's reach, and stays.
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
					t.Fatalf("%d %s", answer.Status, answer.Body)
				}
			}
		}
		if again := owner(tenant); again != first {
			t.Errorf("the owner was %+v, and is %+v", first, again)
		}
	})

	t.Run("a role and a removal", func(t *testing.T) {
		tenant := c.For(t).Tenant("Races for roles")
		for n := range 10 {
			somebody := joined(t, s, tenant, fmt.Sprintf("role%d@races.example.com", n), "member")
			answers := atOnce(t, 4, func(i int) (harness.Answer, error) {
				if i%2 == 0 {
					return tenant.Try(http.MethodPatch, "/members/"+somebody.ID, `{"role":"admin"}`)
				}
				return tenant.Try(http.MethodDelete, "/members/"+somebody.ID, nil)
			})
			removed := 0
			for i, answer := range answers {
				switch {
				case i%2 == 1 && answer.Status == http.StatusNoContent:
					removed++
				case i%2 == 0 && answer.Status == http.StatusOK,
					answer.Status == http.StatusNotFound:
				default:
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
			}
			if _, there := memberOf(tenant, somebody.Email); removed != 1 || there {
				t.Errorf("removed %d times, and there: %v", removed, there)
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
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
			}
			found := 0
			for _, i := range listInvitations(tenant) {
				if i.Email == email {
					found++
				}
			}
			if found != 1 {
				t.Errorf("%d invitations to %s are pending", found, email)
			}
		}
		// Of the links that reach an address one works. The other's mail may not be sent at all.
		for n := range 3 {
			email := fmt.Sprintf("address%d@races.example.com", n)
			opened, worked := map[string]bool{}, 0
			streamstest.Eventually(t, "a link that works", func() bool {
				for _, mail := range s.For(t).Mails(email, 1) {
					if opened[mail.Link()] {
						continue
					}
					opened[mail.Link()] = true
					if page := harness.Open(t, http.MethodGet, mail.Link()); page.Status == http.StatusOK {
						worked++
					}
				}
				return worked > 0
			})
			if _, there := memberOf(tenant, email); worked != 1 || !there {
				t.Errorf("%d links of %s worked, and a member: %v", worked, email, there)
			}
		}
	})

	t.Run("a link opened and revoked", func(t *testing.T) {
		// Either it was accepted, and there was nothing to revoke any more, or it was revoked, and
		// the link does not work.
		tenant := c.For(t).Tenant("Races for links")
		seen := map[int]int{}
		for n := range pairs {
			email := fmt.Sprintf("link%d@races.example.com", n)
			made, link := invite(s, tenant, email, "member")
			answers := atOnce(t, 2, func(i int) (harness.Answer, error) {
				if i == 0 {
					return harness.Open(t, http.MethodGet, link), nil
				}
				return tenant.Try(http.MethodDelete, "/invitations/"+made.ID, nil)
			})
			opened, revoked := answers[0].Status, answers[1].Status
			seen[opened]++
			_, there := memberOf(tenant, email)
			accepted := opened == http.StatusOK && revoked == http.StatusNotFound && there
			rejected := (opened == http.StatusGone || opened == http.StatusNotFound) &&
				revoked == http.StatusNoContent &&
				!there
			if !accepted && !rejected || pending(tenant, made.ID) {
				t.Errorf("opened: %d, revoked: %d, a member: %v", opened, revoked, there)
			}
		}
		t.Logf("opened: %v", seen)
	})

	t.Run("a link opened twice", func(t *testing.T) {
		tenant := c.For(t).Tenant("Races for doors")
		for n := range 15 {
			email := fmt.Sprintf("door%d@races.example.com", n)
			_, link := invite(s, tenant, email, "member")
			open := func(int) (harness.Answer, error) {
				return harness.Open(t, http.MethodGet, link), nil
			}
			for _, answer := range atOnce(t, 4, open) {
				if answer.Status != http.StatusOK {
					t.Errorf("%d %s", answer.Status, answer.Body)
				}
			}
			found := 0
			for _, m := range listMembers(tenant) {
				if m.Email == email {
					found++
				}
			}
			if found != 1 {
				t.Errorf("%s is a member %d times", email, found)
			}
		}
	})
}
