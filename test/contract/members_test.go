package contract

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

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
		client.Must(http.MethodGet, "/members"+after, nil, http.StatusOK).JSON(client.T, &page)
		all = append(all, page.Data...)
		if !page.HasMore {
			return all
		}
		after = "?starting_after=" + page.Data[len(page.Data)-1].ID
	}
}

// memberOf finds a member by address.
func memberOf(client *harness.Tenant, email string) (member, bool) {
	client.T.Helper()
	for _, m := range listMembers(client) {
		if strings.EqualFold(m.Email, email) {
			return m, true
		}
	}
	return member{}, false
}

// joined makes somebody a member of the organization, by invitation.
func joined(t *testing.T, s *harness.Service, tenant *harness.Tenant, email, role string) member {
	t.Helper()
	mails := len(s.Mails(email, 0))
	tenant.For(t).Must(http.MethodPost, "/invitations", map[string]string{"email": email, "role": role}, http.StatusCreated)
	link := s.For(t).Mails(email, mails+1)[mails].Link()
	if answer := harness.Open(t, http.MethodGet, link); answer.Status != http.StatusOK {
		t.Fatalf("opening %s: %d %s", link, answer.Status, answer.Body)
	}
	m, ok := memberOf(tenant.For(t), email)
	if !ok {
		t.Fatalf("%s has opened the link and is no member", email)
	}
	return m
}

// owner gives the organization's only owner.
func owner(client *harness.Tenant) member {
	client.T.Helper()
	for _, m := range listMembers(client) {
		if m.Role == "owner" {
			return m
		}
	}
	client.T.Fatal("an organization without an owner")
	return member{}
}

// members holds the parts "Member" and "Members and invitations", as far as they are about members.
func members(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Members")
	first := owner(tenant)

	t.Run("the first owner", func(t *testing.T) {
		// The table "Member": id, email, role, joined_at.
		client := tenant.For(t)
		list := client.Must(http.MethodGet, "/members", nil, http.StatusOK).Object(t)
		hasExactly(t, "list", list, "data", "has_more")
		single := client.Must(http.MethodGet, "/members/"+first.ID, nil, http.StatusOK).Object(t)
		for _, m := range append(data(t, list), single) {
			hasExactly(t, "member", m, "id", "email", "role", "joined_at")
			isTimestamp(t, "joined_at", m["joined_at"])
			if c.Ours() && (m["email"] != tenant.Owner || m["role"] != "owner") {
				t.Errorf("%v", m)
			}
		}
	})

	t.Run("an API key cannot touch an owner", func(t *testing.T) {
		// "An API key cannot change or remove an owner, nor make someone an owner (403 forbidden)."
		client := tenant.For(t)
		for _, role := range []string{"admin", "member", "owner"} {
			client.Refused(http.MethodPatch, "/members/"+first.ID, `{"role":"`+role+`"}`, http.StatusForbidden, "forbidden")
		}
		client.Refused(http.MethodDelete, "/members/"+first.ID, nil, http.StatusForbidden, "forbidden")
		client.Refused(http.MethodPost, "/invitations", `{"email":"boss@members.example.com","role":"owner"}`, http.StatusForbidden, "forbidden")
		if again := owner(client); again != first {
			t.Errorf("the owner was %+v, and is %+v", first, again)
		}
	})

	t.Run("nor make one", func(t *testing.T) {
		client := tenant.For(t)
		somebody := joined(t, c.For(t).Own(), tenant, "somebody@members.example.com", "member")
		client.Refused(http.MethodPatch, "/members/"+somebody.ID, `{"role":"owner"}`, http.StatusForbidden, "forbidden")
		if m, _ := memberOf(client, somebody.Email); m != somebody {
			t.Errorf("was %+v, and is %+v", somebody, m)
		}
	})

	t.Run("roles", func(t *testing.T) {
		// "PATCH /members/{member_id}: body {role: 'admin' or 'member'}; 200 Member; 400, 403 forbidden for an owner, 404".
		client, s := tenant.For(t), c.For(t).Own()
		somebody := joined(t, s, tenant, "roles@members.example.com", "admin")
		if somebody.Role != "admin" {
			t.Errorf("%+v", somebody)
		}
		for _, role := range []string{"member", "member", "admin", "member"} {
			answer := client.Must(http.MethodPatch, "/members/"+somebody.ID, `{"role":"`+role+`"}`, http.StatusOK)
			hasExactly(t, "member", answer.Object(t), "id", "email", "role", "joined_at")
			var changed, read member
			answer.JSON(t, &changed)
			client.Must(http.MethodGet, "/members/"+somebody.ID, nil, http.StatusOK).JSON(t, &read)
			if changed.Role != role || read != changed || read.JoinedAt != somebody.JoinedAt || read.Email != somebody.Email {
				t.Errorf("asked for %s, answered %+v, reads %+v", role, changed, read)
			}
		}
		for _, body := range []string{``, `{}`, `{"role":null}`, `{"role":"boss"}`, `{"role":""}`, `{"role":"Admin"}`, `{"role":7}`, `{"role":"admin","email":"x@y.z"}`, `[]`, `{"role":"admin"}x`} {
			client.Refused(http.MethodPatch, "/members/"+somebody.ID, body, http.StatusBadRequest, "invalid_request")
		}
	})

	t.Run("removal", func(t *testing.T) {
		// "DELETE /members/{member_id}: 204; 403 forbidden for an owner; 404".
		client, s := tenant.For(t), c.For(t).Own()
		somebody := joined(t, s, tenant, "leaving@members.example.com", "member")
		if answer := client.Must(http.MethodDelete, "/members/"+somebody.ID, nil, http.StatusNoContent); len(answer.Body) != 0 {
			t.Errorf("a 204 with a body: %s", answer.Body)
		}
		for _, id := range []string{somebody.ID, noMember, "x", "%00", strings.Repeat("x", 1000)} {
			client.Refused(http.MethodGet, "/members/"+id, nil, http.StatusNotFound, "not_found")
			client.Refused(http.MethodPatch, "/members/"+id, `{"role":"admin"}`, http.StatusNotFound, "not_found")
			client.Refused(http.MethodDelete, "/members/"+id, nil, http.StatusNotFound, "not_found")
		}
		// Who was removed can come again.
		if again := joined(t, s, tenant, "leaving@members.example.com", "admin"); again.Role != "admin" {
			t.Errorf("%+v", again)
		}
	})

	t.Run("a person in two organizations", func(t *testing.T) {
		client, s := tenant.For(t), c.For(t).Own()
		other := c.For(t).Tenant("Other members")
		here, there := joined(t, s, tenant, "both@members.example.com", "member"), joined(t, s, other, "both@members.example.com", "admin")
		client.Must(http.MethodDelete, "/members/"+here.ID, nil, http.StatusNoContent)
		if still, ok := memberOf(other, "both@members.example.com"); !ok || still != there {
			t.Errorf("%+v, was %+v", still, there)
		}
	})

	t.Run("list", func(t *testing.T) {
		// "owners first". Pages as everywhere (design, section 6).
		s := c.For(t).Own()
		client := c.For(t).Tenant("Many members")
		for i := range 4 {
			joined(t, s, client, fmt.Sprintf("person%d@many.example.com", i), []string{"member", "admin"}[i%2])
		}
		all := listMembers(client)
		if len(all) != 5 || all[0].Role != "owner" {
			t.Fatalf("%+v", all)
		}
		after := ""
		for i, m := range all {
			var page struct {
				Data    []member
				HasMore bool `json:"has_more"`
			}
			client.Must(http.MethodGet, "/members?limit=1"+after, nil, http.StatusOK).JSON(t, &page)
			if len(page.Data) != 1 || page.Data[0] != m || page.HasMore != (i < len(all)-1) {
				t.Errorf("page %d: %+v, wanted %+v", i, page, m)
			}
			after = "&starting_after=" + m.ID
		}
		for _, query := range []string{"limit=0", "limit=51", "limit=x", "starting_after=x", "starting_after=" + noMember, "starting_after=" + first.ID} {
			client.Refused(http.MethodGet, "/members?"+query, nil, http.StatusBadRequest, "invalid_request")
		}
	})
}

type invitation struct {
	ID        string
	Email     string
	Role      string
	Status    string
	CreatedAt string `json:"created_at"`
	ExpiresAt string `json:"expires_at"`
}

func listInvitations(client *harness.Tenant) []invitation {
	client.T.Helper()
	var page struct{ Data []invitation }
	client.Must(http.MethodGet, "/invitations", nil, http.StatusOK).JSON(client.T, &page)
	return page.Data
}

func pending(client *harness.Tenant, id string) bool {
	client.T.Helper()
	for _, i := range listInvitations(client) {
		if i.ID == id {
			return true
		}
	}
	return false
}

// invite invites somebody and gives the link of the mail.
func invite(s *harness.Service, client *harness.Tenant, email, role string) (made invitation, link string) {
	client.T.Helper()
	s = s.For(client.T)
	mails := len(s.Mails(email, 0))
	client.Must(http.MethodPost, "/invitations", map[string]string{"email": email, "role": role}, http.StatusCreated).JSON(client.T, &made)
	link = s.Mails(email, mails+1)[mails].Link()
	if !strings.HasPrefix(link, s.Public()+"/portal/invitations/") {
		client.T.Fatalf("the mail's link is %q", link)
	}
	return made, link
}

// invitations holds the parts "Invitation".
func invitations(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Invitations")

	t.Run("invited, opened, a member", func(t *testing.T) {
		// "Created with email and role (admin or member, default member). A link is emailed to the address and works for 7 days. Opening it
		// adds the person to the organization, creating their account if they have none."
		client, s := tenant.For(t), c.For(t).Own()
		const email = "new@invitations.example.com"
		answer := client.Must(http.MethodPost, "/invitations", `{"email":"`+email+`"}`, http.StatusCreated)
		made := answer.Object(t)
		hasExactly(t, "invitation", made, "id", "email", "role", "status", "created_at", "expires_at") // design, section 6
		if made["email"] != email || made["role"] != "member" || made["status"] != "pending" {
			t.Errorf("%v", made)
		}
		isTimestamp(t, "created_at", made["created_at"])
		isTimestamp(t, "expires_at", made["expires_at"])
		created, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(made["created_at"]))
		expires, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(made["expires_at"]))
		if valid := expires.Sub(created); valid != 7*24*time.Hour {
			t.Errorf("valid for %s", valid)
		}
		list := client.Must(http.MethodGet, "/invitations", nil, http.StatusOK).Object(t)
		hasExactly(t, "list", list, "data", "has_more")
		if first := data(t, list)[0]; fmt.Sprint(first) != fmt.Sprint(made) {
			t.Errorf("made %v, listed %v", made, first)
		}
		mail := s.For(t).Mails(email, 1)[0]
		link := mail.Link()
		if !strings.Contains(mail.Text, tenantName) || mail.Header.Get("Subject") == "" || mail.Header.Get("From") == "" || mail.Header.Get("Date") == "" {
			t.Errorf("the mail: %v\n%s", mail.Header, mail.Text)
		}
		token := link[strings.LastIndex(link, "/")+1:]
		if len(token) < 43 || strings.Contains(string(answer.Body), token) {
			t.Errorf("the token %q must be long, and not be told to who invites", token)
		}
		if _, ok := memberOf(client, email); ok {
			t.Error("a member before the link was opened")
		}
		// A mail program that looks at a link before it is opened changes nothing.
		harness.Open(t, http.MethodHead, link)
		if !pending(client, made["id"].(string)) {
			t.Error("HEAD has used the link up")
		}
		page := harness.Open(t, http.MethodGet, link)
		if page.Status != http.StatusOK || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") || !strings.Contains(string(page.Body), tenantName) {
			t.Errorf("%d %v %s", page.Status, page.Header, page.Body)
		}
		if m, ok := memberOf(client, email); !ok || m.Role != "member" {
			t.Errorf("not a member: %+v", m)
		}
		// "pending, invited person opens the link within 7 days: accepted"; "GET /invitations lists only pending ones".
		if pending(client, made["id"].(string)) {
			t.Error("an accepted invitation is listed")
		}
		client.Refused(http.MethodDelete, "/invitations/"+made["id"].(string), nil, http.StatusNotFound, "not_found")
		// Opened once more, it changes nothing.
		before := listMembers(client)
		if again := harness.Open(t, http.MethodGet, link); again.Status != http.StatusOK {
			t.Errorf("opened again: %d %s", again.Status, again.Body)
		}
		if after := listMembers(client); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("opened again, members were %v, and are %v", before, after)
		}
		// "only its hash": the token stands in the mail alone.
		if found := s.For(t).FindInFiles(token, "outbox"); found != "" {
			t.Errorf("%s holds the token", found)
		}
		if strings.Contains(s.Log(), token) {
			t.Error("the log holds the token")
		}
	})

	t.Run("the page is fit for a link that is a secret", func(t *testing.T) {
		s := c.For(t).Own()
		_, link := invite(s, tenant.For(t), "page@invitations.example.com", "admin")
		for _, url := range []string{link, link[:len(link)-1], s.Public() + "/portal/invitations/garbage"} {
			page := harness.Open(t, http.MethodGet, url)
			if page.Header.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(page.Header.Get("Cache-Control"), "no-store") ||
				!strings.Contains(page.Header.Get("Content-Security-Policy"), "default-src 'none'") || page.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %v", url, page.Header)
			}
			if third := regexp.MustCompile(`(src|href|action)="(https?:)?//`).FindString(string(page.Body)); third != "" {
				t.Errorf("the page asks another host: %s", third)
			}
		}
		if m, ok := memberOf(tenant.For(t), "page@invitations.example.com"); !ok || m.Role != "admin" {
			t.Errorf("%+v", m)
		}
	})

	t.Run("created and taken back", func(t *testing.T) {
		client := tenant.For(t)
		for _, role := range []string{"admin", "member"} {
			var made invitation
			client.Must(http.MethodPost, "/invitations", map[string]string{"email": role + "@taken-back.example.com", "role": role}, http.StatusCreated).JSON(t, &made)
			if made.Role != role || made.Status != "pending" || !pending(client, made.ID) {
				t.Errorf("%+v", made)
			}
			client.Must(http.MethodDelete, "/invitations/"+made.ID, nil, http.StatusNoContent)
			if pending(client, made.ID) {
				t.Error("a revoked invitation is listed")
			}
			client.Refused(http.MethodDelete, "/invitations/"+made.ID, nil, http.StatusNotFound, "not_found")
		}
	})

	t.Run("revoked", func(t *testing.T) {
		// "pending, DELETE /invitations/{invitation_id}: revoked (link stops working)".
		client, s := tenant.For(t), c.For(t).Own()
		made, link := invite(s, client, "revoked@invitations.example.com", "member")
		if answer := client.Must(http.MethodDelete, "/invitations/"+made.ID, nil, http.StatusNoContent); len(answer.Body) != 0 {
			t.Errorf("a 204 with a body: %s", answer.Body)
		}
		dead(t, client, link, "revoked@invitations.example.com")
		for _, id := range []string{made.ID, noMember, "x", "%00", strings.Repeat("x", 1000)} {
			client.Refused(http.MethodDelete, "/invitations/"+id, nil, http.StatusNotFound, "not_found")
		}
	})

	t.Run("replaced", func(t *testing.T) {
		// "a second to the same address replaces the first" (design, section 6).
		client, s := tenant.For(t), c.For(t).Own()
		first, oldLink := invite(s, client, "twice@invitations.example.com", "member")
		second, newLink := invite(s, client, "Twice@invitations.example.com", "admin")
		if first.ID == second.ID || pending(client, first.ID) || !pending(client, second.ID) {
			t.Errorf("%+v, then %+v; pending are %+v", first, second, listInvitations(client))
		}
		dead(t, client, oldLink, "twice@invitations.example.com")
		client.Refused(http.MethodDelete, "/invitations/"+first.ID, nil, http.StatusNotFound, "not_found")
		if page := harness.Open(t, http.MethodGet, newLink); page.Status != http.StatusOK {
			t.Errorf("%d %s", page.Status, page.Body)
		}
		if m, ok := memberOf(client, "twice@invitations.example.com"); !ok || m.Role != "admin" {
			t.Errorf("%+v", m)
		}
	})

	t.Run("no such link", func(t *testing.T) {
		client, s := tenant.For(t), c.For(t).Own()
		_, link := invite(s, client, "near@invitations.example.com", "member")
		last := link[len(link)-1:]
		changed := map[bool]string{true: "B", false: "A"}[last == "A"]
		for _, other := range []string{link[:len(link)-1], link + "A", link[:len(link)-12] + changed + link[len(link)-11:], s.Public() + "/portal/invitations/x", s.Public() + "/portal/invitations/%00", s.Public() + "/portal/invitations/" + strings.Repeat("A", 4000)} {
			dead(t, client, other, "near@invitations.example.com")
		}
	})

	t.Run("refused", func(t *testing.T) {
		client := tenant.For(t)
		for _, body := range []string{
			``, `{}`, `[]`, `{"role":"member"}`, `{"email":null}`, `{"email":7}`, `{"email":""}`, `{"email":"x"}`, `{"email":"x@"}`, `{"email":"@example.com"}`, `{"email":"a b@example.com"}`,
			`{"email":"a@example.com\nBcc: b@example.com"}`, `{"email":"A <a@example.com>"}`, `{"email":"a@example.com, b@example.com"}`, `{"email":"a@example.com","role":"boss"}`,
			`{"email":"a@example.com","role":null}`, `{"email":"a@example.com","role":""}`, `{"email":"a@example.com","name":"A"}`, `{"email":"a@example.com"}x`,
			`{"email":"` + strings.Repeat("x", 300) + `@example.com"}`,
		} {
			client.Refused(http.MethodPost, "/invitations", body, http.StatusBadRequest, "invalid_request")
		}
		client.Refused(http.MethodPost, "/invitations", map[string]string{"email": owner(client).Email}, http.StatusBadRequest, "invalid_request")
		// "to a member: 400" (design, section 6).
		somebody := joined(t, c.For(t).Own(), tenant, "already@invitations.example.com", "member")
		for _, email := range []string{somebody.Email, strings.ToUpper(somebody.Email)} {
			client.Refused(http.MethodPost, "/invitations", map[string]string{"email": email}, http.StatusBadRequest, "invalid_request")
		}
	})

	t.Run("list", func(t *testing.T) {
		// "200 pending invitations, newest first".
		c.For(t).Own() // an organization without other invitations
		client := c.For(t).Tenant("Many invitations")
		var want []string
		for i := range 5 {
			var made invitation
			client.Must(http.MethodPost, "/invitations", map[string]string{"email": fmt.Sprintf("person%d@list.example.com", i)}, http.StatusCreated).JSON(t, &made)
			if !pending(client, made.ID) {
				t.Errorf("%+v is not pending", made)
			}
			want = append([]string{made.ID}, want...)
		}
		after := ""
		for i, id := range want {
			var page struct {
				Data    []invitation
				HasMore bool `json:"has_more"`
			}
			client.Must(http.MethodGet, "/invitations?limit=1"+after, nil, http.StatusOK).JSON(t, &page)
			if len(page.Data) != 1 || page.Data[0].ID != id || page.HasMore != (i < len(want)-1) {
				t.Errorf("page %d: %+v, wanted %s", i, page, id)
			}
			after = "&starting_after=" + id
		}
		for _, query := range []string{"limit=0", "limit=51", "limit=x", "starting_after=x", "starting_after=" + noMember} {
			client.Refused(http.MethodGet, "/invitations?"+query, nil, http.StatusBadRequest, "invalid_request")
		}
		stranger := c.For(t).Stranger("Stranger to invitations")
		if list := listInvitations(stranger); len(list) != 0 {
			t.Errorf("a stranger sees %+v", list)
		}
		stranger.Refused(http.MethodDelete, "/invitations/"+want[0], nil, http.StatusNotFound, "not_found")
		if !pending(client, want[0]) {
			t.Error("a stranger has revoked an invitation")
		}
	})
}

// tenantName is what the invitations' organization is called.
const tenantName = "Invitations"

// dead holds that a link does not work, and makes nobody a member.
func dead(t *testing.T, client *harness.Tenant, link, email string) {
	t.Helper()
	page := harness.Open(t, http.MethodGet, link)
	if page.Status != http.StatusGone && page.Status != http.StatusNotFound {
		t.Errorf("%s: %d %s", link, page.Status, page.Body)
	}
	if m, ok := memberOf(client.For(t), email); ok {
		t.Errorf("a dead link has made a member: %+v", m)
	}
}
