package contract

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

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
	client.Get("/invitations").JSON(client.T, &page)
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

// invite invites a person and returns the link in the mail.
func invite(
	s *harness.Service, client *harness.Tenant, email, role string,
) (created invitation, link string) {
	client.T.Helper()
	s = s.For(client.T)
	mails := len(s.Mails(email, 0))
	client.Create(
		"/invitations", map[string]string{"email": email, "role": role},
	).JSON(client.T, &created)
	link = s.Mails(email, mails+1)[mails].Link()
	if !strings.HasPrefix(link, s.Public()+"/portal/invitations/") {
		client.T.Fatalf("mail: got link %q, want one to the portal", link)
	}
	return created, link
}

// invitations tests "Invitation".
func invitations(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Invitations")

	t.Run("invited, opened, a member", func(t *testing.T) {
		// "Created with email and role (admin or member, default member). A link is emailed to the
		// address and works for 7 days. Opening it adds the person to the organization, creating
		// their account if they have none."
		client, s := tenant.For(t), c.For(t).OwnService()
		const email = "new@invitations.example.com"
		answer := client.Create("/invitations", `{"email":"`+email+`"}`)
		made := answer.Object(t)
		if made["email"] != email || made["role"] != "member" || made["status"] != "pending" {
			t.Errorf("got %v, want a pending invitation of a member, %s", made, email)
		}
		created, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(made["created_at"]))
		expires, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(made["expires_at"]))
		if valid := expires.Sub(created); valid != 7*24*time.Hour {
			t.Errorf("validity: got %s, want 7 days", valid)
		}
		list := client.Get("/invitations").Object(t)
		if first := data(t, list)[0]; fmt.Sprint(first) != fmt.Sprint(made) {
			t.Errorf("list: got %v, want %v as created", first, made)
		}
		mail := s.For(t).Mails(email, 1)[0]
		link := mail.Link()
		if !strings.Contains(mail.Text, tenantName) || mail.Header.Get("Subject") == "" ||
			mail.Header.Get("From") == "" ||
			mail.Header.Get("Date") == "" {
			t.Errorf("got mail %v\n%s", mail.Header, mail.Text)
		}
		token := link[strings.LastIndex(link, "/")+1:]
		if len(token) < 43 || strings.Contains(string(answer.Body), token) {
			t.Errorf("token %q: must be long and not part of the answer", token)
		}
		if _, ok := memberOf(client, email); ok {
			t.Error("got a member before the link was opened")
		}
		// HEAD, which mail programs send to check a link, changes nothing.
		harness.Open(t, http.MethodHead, link)
		if !pending(client, made["id"].(string)) {
			t.Error("HEAD: the invitation is no longer pending")
		}
		page := harness.Open(t, http.MethodGet, link)
		if page.Status != http.StatusOK ||
			!strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") ||
			!strings.Contains(string(page.Body), tenantName) {
			t.Errorf(
				"opened link: got %d %v %s, want a page that names %s", page.Status, page.Header,
				page.Body, tenantName,
			)
		}
		if m, ok := memberOf(client, email); !ok || m.Role != "member" {
			t.Errorf("got %+v, want a member", m)
		}
		// "pending, invited person opens the link within 7 days: accepted"; "GET /invitations lists
		// only pending ones".
		if pending(client, made["id"].(string)) {
			t.Error("accepted invitation: still listed")
		}
		client.Rejected(http.MethodDelete, "/invitations/"+made["id"].(string), nil, "not_found")
		// The link signs in once.
		for _, want := range []bool{true, false} {
			request, _ := http.NewRequest(http.MethodPost, link, nil)
			answer, err := http.DefaultTransport.RoundTrip(request)
			harness.Must(t, err)
			answer.Body.Close()
			signedIn := strings.Contains(strings.Join(answer.Header["Set-Cookie"], " "), "session")
			if to := answer.Header.Get("Location"); answer.StatusCode != http.StatusSeeOther ||
				signedIn == strings.Contains(to, "sign-in") || signedIn != want {
				t.Errorf("signed in by the link: got %d to %q, signed in: %t", answer.StatusCode, to, signedIn)
			}
		}
		// Opening the link again changes nothing.
		before := listMembers(client)
		if again := harness.Open(t, http.MethodGet, link); again.Status != http.StatusOK {
			t.Errorf("opened again: got %d %s", again.Status, again.Body)
		}
		if after := listMembers(client); fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("opened again: members were %v, got %v", before, after)
		}
		// "only its hash": only the mail has the token.
		if found := s.For(t).FindInFiles(token, "outbox"); found != "" {
			t.Errorf("%s contains the token", found)
		}
		if strings.Contains(s.Log(), token) {
			t.Error("the log contains the token")
		}
	})

	t.Run("the page keeps its secret link", func(t *testing.T) {
		s := c.For(t).OwnService()
		_, link := invite(s, tenant.For(t), "page@invitations.example.com", "admin")
		for _, url := range []string{
			link, link[:len(link)-1], s.Public() + "/portal/invitations/garbage",
		} {
			page := harness.Open(t, http.MethodGet, url)
			if page.Header.Get("Referrer-Policy") != "no-referrer" ||
				!strings.Contains(page.Header.Get("Cache-Control"), "no-store") ||
				!strings.Contains(
					page.Header.Get("Content-Security-Policy"), "default-src 'none'",
				) ||
				page.Header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf(
					"%s: got header %v, want the headers that protect the link", url, page.Header,
				)
			}
			if external := regexp.MustCompile(
				`(src|href|action)="(https?:)?//`,
			).FindString(string(page.Body)); external != "" {
				t.Errorf("the page requests another host: %s", external)
			}
		}
		if m, ok := memberOf(tenant.For(t), "page@invitations.example.com"); !ok ||
			m.Role != "admin" {
			t.Errorf("got %+v, want an admin", m)
		}
	})

	t.Run("revoked", func(t *testing.T) {
		// "pending, DELETE /invitations/{invitation_id}: revoked (link stops working)".
		client, s := tenant.For(t), c.For(t).OwnService()
		made, link := invite(s, client, "revoked@invitations.example.com", "member")
		client.Delete("/invitations/" + made.ID)
		expectDeadLink(t, client, link, "revoked@invitations.example.com")
		for _, id := range []string{made.ID, noMember, "x", "%00", strings.Repeat("x", 1000)} {
			client.Rejected(http.MethodDelete, "/invitations/"+id, nil, "not_found")
		}
	})

	t.Run("replaced", func(t *testing.T) {
		// "a second to the same address replaces the first" (design, section 6).
		client, s := tenant.For(t), c.For(t).OwnService()
		first, oldLink := invite(s, client, "twice@invitations.example.com", "member")
		second, newLink := invite(s, client, "Twice@invitations.example.com", "admin")
		if first.ID == second.ID || pending(client, first.ID) || !pending(client, second.ID) {
			t.Errorf("got %+v, then %+v; pending %+v", first, second, listInvitations(client))
		}
		expectDeadLink(t, client, oldLink, "twice@invitations.example.com")
		client.Rejected(http.MethodDelete, "/invitations/"+first.ID, nil, "not_found")
		if page := harness.Open(t, http.MethodGet, newLink); page.Status != http.StatusOK {
			t.Errorf("new link: got %d %s, want 200", page.Status, page.Body)
		}
		if m, ok := memberOf(client, "twice@invitations.example.com"); !ok || m.Role != "admin" {
			t.Errorf("got %+v, want an admin", m)
		}
	})

	t.Run("no such link", func(t *testing.T) {
		client, s := tenant.For(t), c.For(t).OwnService()
		_, link := invite(s, client, "near@invitations.example.com", "member")
		last := link[len(link)-1:]
		changed := map[bool]string{true: "B", false: "A"}[last == "A"]
		for _, other := range []string{
			link[:len(link)-1], link + "A", link[:len(link)-12] + changed + link[len(link)-11:],
			s.Public() + "/portal/invitations/x", s.Public() + "/portal/invitations/%00",
			s.Public() + "/portal/invitations/" + strings.Repeat("A", 4000),
		} {
			expectDeadLink(t, client, other, "near@invitations.example.com")
		}
	})

	t.Run("rejected", func(t *testing.T) {
		client := tenant.For(t)
		for _, body := range []string{
			``, `{}`, `[]`, `{"role":"member"}`, `{"email":null}`, `{"email":7}`, `{"email":""}`,
			`{"email":"x"}`, `{"email":"x@"}`, `{"email":"@example.com"}`,
			`{"email":"a b@example.com"}`,
			`{"email":"a@example.com\nBcc: b@example.com"}`, `{"email":"A <a@example.com>"}`,
			`{"email":"a@example.com, b@example.com"}`, `{"email":"a@example.com","role":"boss"}`,
			`{"email":"a@example.com","role":null}`, `{"email":"a@example.com","role":""}`,
			`{"email":"a@example.com","name":"A"}`, `{"email":"a@example.com"}x`,
			`{"email":"` + strings.Repeat("x", 300) + `@example.com"}`,
		} {
			client.Rejected(http.MethodPost, "/invitations", body, "invalid_request")
		}
		client.Rejected(
			http.MethodPost, "/invitations", map[string]string{"email": owner(client).Email},
			"invalid_request",
		)
		// "to a member: 400" (design, section 6).
		person := joined(
			t, c.For(t).OwnService(), tenant, "already@invitations.example.com", "member",
		)
		for _, email := range []string{person.Email, strings.ToUpper(person.Email)} {
			client.Rejected(
				http.MethodPost, "/invitations", map[string]string{"email": email},
				"invalid_request",
			)
		}
	})

	t.Run("list", func(t *testing.T) {
		// "200 pending invitations, newest first".
		c.For(t).OwnService() // needs an organization without other invitations
		client := c.For(t).Tenant("Many invitations")
		var want []string
		for i := range 52 {
			var made invitation
			client.Create(
				"/invitations",
				map[string]string{"email": fmt.Sprintf("person%d@list.example.com", i)},
			).JSON(t, &made)
			want = append([]string{made.ID}, want...)
		}
		for _, limit := range []int{50, 20, 13} {
			var got []string
			query := fmt.Sprintf("?limit=%d", limit)
			if limit == 50 {
				query = "?" // the default limit (design, section 6)
			}
			after := ""
			for more := true; more; {
				var page struct {
					Data    []invitation
					HasMore bool `json:"has_more"`
				}
				client.Get("/invitations"+query+after).JSON(t, &page)
				for _, i := range page.Data {
					got = append(got, i.ID)
				}
				if more = page.HasMore; more && len(page.Data) != limit {
					t.Errorf("page of %d: got %d invitations", limit, len(page.Data))
				}
				after = "&starting_after=" + got[len(got)-1]
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d: got %v, want %v", limit, got, want)
			}
		}
		for _, query := range []string{
			"limit=0", "limit=51", "limit=x", "starting_after=x", "starting_after=" + noMember,
		} {
			client.Rejected(http.MethodGet, "/invitations?"+query, nil, "invalid_request")
		}
		stranger := c.For(t).OtherTenant("Stranger to invitations")
		if list := listInvitations(stranger); len(list) != 0 {
			t.Errorf("other organization: got %+v, want none", list)
		}
		stranger.Rejected(http.MethodDelete, "/invitations/"+want[0], nil, "not_found")
		if !pending(client, want[0]) {
			t.Error("other organization: revoked the invitation")
		}
	})
}

// tenantName is the name of the organization that invites.
const tenantName = "Invitations"

// expectDeadLink checks that a link does not work and adds no member.
func expectDeadLink(t *testing.T, client *harness.Tenant, link, email string) {
	t.Helper()
	page := harness.Open(t, http.MethodGet, link)
	if page.Status != http.StatusGone && page.Status != http.StatusNotFound {
		t.Errorf("%s: got %d %s, want 410 or 404", link, page.Status, page.Body)
	}
	if m, ok := memberOf(client.For(t), email); ok {
		t.Errorf("dead link: got a member: %+v", m)
	}
}
