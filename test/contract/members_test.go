package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

type member struct {
	ID       string
	Email    string
	Role     string
	JoinedAt string `json:"joined_at"`
}

func listMembers(client *harness.Tenant) []member {
	client.T.Helper()
	var all []member
	after := ""
	for {
		var page struct {
			Data    []member
			HasMore bool `json:"has_more"`
		}
		client.Get("/members"+after).JSON(client.T, &page)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		after = "?starting_after=" + page.Data[len(page.Data)-1].ID
	}
}

// memberOf returns the member with an email address.
func memberOf(client *harness.Tenant, email string) (member, bool) {
	client.T.Helper()
	for _, m := range listMembers(client) {
		if strings.EqualFold(m.Email, email) {
			return m, true
		}
	}
	return member{}, false
}

// joined adds a person to the organization by invitation and returns the member.
func joined(t *testing.T, s *harness.Service, tenant *harness.Tenant, email, role string) member {
	t.Helper()
	mails := len(s.Mails(email, 0))
	tenant.For(t).
		Must(http.MethodPost, "/invitations", map[string]string{
			"email": email, "role": role,
		}, http.StatusCreated)
	link := s.For(t).Mails(email, mails+1)[mails].Link()
	if answer := harness.Open(t, http.MethodGet, link); answer.Status != http.StatusOK {
		t.Fatalf("open %s: got %d %s, want 200", link, answer.Status, answer.Body)
	}
	m, ok := memberOf(tenant.For(t), email)
	if !ok {
		t.Fatalf("%s opened the link: got no member", email)
	}
	return m
}

// owner returns the organization's first owner.
func owner(client *harness.Tenant) member {
	client.T.Helper()
	for _, m := range listMembers(client) {
		if m.Role == "owner" {
			return m
		}
	}
	client.T.Fatal("got no owner, want one")
	return member{}
}

// members tests "Member", and "Members and invitations" except for invitations.
func members(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Members")
	first := owner(tenant)

	t.Run("the first owner", func(t *testing.T) {
		// The table "Member": id, email, role, joined_at.
		client := tenant.For(t)
		list := client.Get("/members").Object(t)
		single := client.Get("/members/" + first.ID).Object(t)
		for _, m := range append(data(t, list), single) {
			if c.Owned() && (m["email"] != tenant.Owner || m["role"] != "owner") {
				t.Errorf("member: got %v, want owner %s", m, tenant.Owner)
			}
		}
	})

	t.Run("an API key cannot touch an owner", func(t *testing.T) {
		// "An API key cannot change or remove an owner, nor make someone an owner (403 forbidden)."
		client := tenant.For(t)
		for _, role := range []string{"admin", "member", "owner"} {
			client.Rejected(
				http.MethodPatch, "/members/"+first.ID, `{"role":"`+role+`"}`, "forbidden",
			)
		}
		client.Rejected(http.MethodDelete, "/members/"+first.ID, nil, "forbidden")
		client.Rejected(
			http.MethodPost, "/invitations", `{"email":"boss@members.example.com","role":"owner"}`,
			"forbidden",
		)
		if again := owner(client); again != first {
			t.Errorf("owner: got %+v, want %+v unchanged", again, first)
		}
	})

	t.Run("an API key cannot make an owner", func(t *testing.T) {
		client := tenant.For(t)
		person := joined(
			t, c.For(t).OwnService(), tenant, "somebody@members.example.com", "member",
		)
		client.Rejected(http.MethodPatch, "/members/"+person.ID, `{"role":"owner"}`, "forbidden")
		if m, _ := memberOf(client, person.Email); m != person {
			t.Errorf("member: got %+v, want %+v unchanged", m, person)
		}
	})

	t.Run("roles", func(t *testing.T) {
		// "PATCH /members/{member_id}: body {role: 'admin' or 'member'}; 200 Member; 400, 403
		// forbidden for an owner, 404".
		client, s := tenant.For(t), c.For(t).OwnService()
		person := joined(t, s, tenant, "roles@members.example.com", "admin")
		if person.Role != "admin" {
			t.Errorf("invited as an admin: got %+v", person)
		}
		for _, role := range []string{"member", "member", "admin", "member"} {
			answer := client.Patch("/members/"+person.ID, `{"role":"`+role+`"}`)
			var changed, read member
			answer.JSON(t, &changed)
			client.Get("/members/"+person.ID).JSON(t, &read)
			if changed.Role != role || read != changed || read.JoinedAt != person.JoinedAt ||
				read.Email != person.Email {
				t.Errorf("role %s: got answer %+v, then read %+v", role, changed, read)
			}
		}
		for _, body := range []string{
			``, `{}`, `{"role":null}`, `{"role":"boss"}`, `{"role":""}`, `{"role":"Admin"}`,
			`{"role":7}`, `{"role":"admin","email":"x@y.z"}`, `[]`, `{"role":"admin"}x`,
		} {
			client.Rejected(http.MethodPatch, "/members/"+person.ID, body, "invalid_request")
		}
	})

	t.Run("removal", func(t *testing.T) {
		// "DELETE /members/{member_id}: 204; 403 forbidden for an owner; 404".
		client, s := tenant.For(t), c.For(t).OwnService()
		person := joined(t, s, tenant, "leaving@members.example.com", "member")
		client.Delete("/members/" + person.ID)
		for _, id := range []string{person.ID, noMember, "x", "%00", strings.Repeat("x", 1000)} {
			client.Rejected(http.MethodGet, "/members/"+id, nil, "not_found")
			client.Rejected(http.MethodPatch, "/members/"+id, `{"role":"admin"}`, "not_found")
			client.Rejected(http.MethodDelete, "/members/"+id, nil, "not_found")
		}
		// A removed person can be invited again.
		if again := joined(
			t, s, tenant, "leaving@members.example.com", "admin",
		); again.Role != "admin" {
			t.Errorf("invited again as an admin: got %+v", again)
		}
	})

	t.Run("a person in two organizations", func(t *testing.T) {
		client, s := tenant.For(t), c.For(t).OwnService()
		other := c.For(t).Tenant("Other members")
		here := joined(t, s, tenant, "both@members.example.com", "member")
		there := joined(t, s, other, "both@members.example.com", "admin")
		client.Delete("/members/" + here.ID)
		if still, ok := memberOf(other, "both@members.example.com"); !ok || still != there {
			t.Errorf("other organization: got %+v, want %+v", still, there)
		}
	})

	t.Run("list", func(t *testing.T) {
		// "owners first". Pages as everywhere (design, section 6).
		s := c.For(t).OwnService()
		client := c.For(t).Tenant("Many members")
		for i := range 4 {
			joined(
				t, s, client, fmt.Sprintf("person%d@many.example.com", i),
				[]string{"member", "admin"}[i%2],
			)
		}
		all := listMembers(client)
		if len(all) != 5 || all[0].Role != "owner" {
			t.Fatalf("members: got %+v, want 5, the owner first", all)
		}
		after := ""
		for i, m := range all {
			var page struct {
				Data    []member
				HasMore bool `json:"has_more"`
			}
			client.Get("/members?limit=1"+after).JSON(t, &page)
			if len(page.Data) != 1 || page.Data[0] != m || page.HasMore != (i < len(all)-1) {
				t.Errorf("page %d: got %+v, want %+v", i, page, m)
			}
			after = "&starting_after=" + m.ID
		}
		for _, query := range []string{
			"limit=0", "limit=51", "limit=x", "starting_after=x", "starting_after=" + noMember,
			"starting_after=" + first.ID,
		} {
			client.Rejected(http.MethodGet, "/members?"+query, nil, "invalid_request")
		}
	})
}
