package portal_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
)

const inOne = "/portal/" + orgOne

// The pages of an organization hold the promises of all pages, and show names as text.
func TestPagesOfAnOrganization(t *testing.T) {
	t.Parallel()
	w := newBackend()
	w.people[0].OrgName = "<b>شركة</b>"
	for who, manages := range map[string]bool{"olga@example.org": true, "max@example.org": false} {
		b := w.open(t, nil).signIn(who)
		for path, says := range map[string]string{
			"/members": "&lt;script&gt;", "/keys": "3 hours ago", "/sites": "hub-7k2m-q4xd-93ta",
			"/activity":          "changed the role of",
			"/activity/commands": "to <b><bdi>&lt;b&gt;eco&lt;/b&gt;</bdi></b>",
		} {
			page := b.get(inOne+path, 200)
			if checkPage(t, page); !strings.Contains(page, says) {
				t.Errorf("%s does not say %q: %s", path, says, page)
			}
			if forms := strings.Count(page, `method="post"`); (forms > 1) != manages &&
				!strings.HasPrefix(path, "/activity") {
				t.Errorf("%s: %d forms for %s", path, forms, who)
			}
		}
	}
}

// Non-members get the same page as for an unknown organization.
func TestNonMembersSeeNothing(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("max@example.org")
	foreign := b.get("/portal/"+orgTwo+"/members", 404)
	none := b.get("/portal/01940000-0000-7000-8000-000000000009/members", 404)
	if foreign != none {
		t.Errorf("%s\n%s", foreign, none)
	}
	b.get(inOne+"/members", 200)
	w.people = w.people[:1] // max is removed
	b.get(inOne+"/members", 404)
	if page := b.get("/portal/organizations", 200); !strings.Contains(
		page, "not in an organization yet",
	) {
		t.Error(page)
	}
}

// A member without a managing role can change nothing.
func TestOnlyManagersManage(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("max@example.org")
	for _, path := range []string{
		"/members/olga/role", "/invitations", "/invitations/x/revoke", "/keys",
		"/keys/keyid/revoke", "/sites", "/sites/site/name", "/sites/hubs",
	} {
		_, page := b.post(inOne+path, 403)
		checkPage(t, page)
	}
	if len(w.did) != 0 {
		t.Errorf("done: %q", w.did)
	}
	// whoever wants to may leave, as far as the directory lets
	b.post(inOne+"/members/max/remove", 303)
	if len(w.did) != 1 || w.did[0] != "member max: remove max" {
		t.Errorf("done: %q", w.did)
	}
}

// An action is recorded for the member who is signed in and redirects to a page with a notice. A
// rejected form is shown again with the error.
func TestActions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path   string
		fields []string
		did    string
		to     string
		// in is the status of the page with the rejected form; 0 if the action has an error page
		// instead.
		in int
	}{
		{"/members/max/role", []string{"role", "admin"}, "make max admin", "/members", 0},
		{"/members/max/remove", nil, "remove max", "/members", 0},
		{
			"/invitations", []string{"email", "ann@example.org", "role", "admin"},
			"invite ann@example.org admin", "/members", 400,
		},
		{"/keys/keyid/revoke", nil, "revoke key keyid", "/keys", 0},
		{"/sites", []string{"name", " Mill "}, "create site Mill", "/sites", 400},
		{
			"/sites/hubs", []string{"serial", "hub7k2mq4xd93ta", "site", "site"},
			"add hub-7k2m-q4xd-93ta at site", "/sites", 400,
		},
	} {
		w := newBackend()
		b := w.open(t, nil).signIn("olga@example.org")
		to, _ := b.post(inOne+c.path, 303, c.fields...)
		if to != inOne+c.to || len(w.did) != 1 || w.did[0] != "member olga: "+c.did {
			t.Errorf("%s: to %q, done %q", c.path, to, w.did)
		}
		if page := b.get(to, 200); !strings.Contains(page, `role="status"`) {
			t.Errorf("%s: no notice: %s", c.path, page)
		}
		w.err = domain.Errorf(domain.CodeInvalidRequest, "field: is wrong in <some> way")
		status := c.in
		if status == 0 {
			status = 400
		}
		_, page := b.post(inOne+c.path, status, c.fields...)
		if checkPage(t, page); !strings.Contains(page, "It is wrong in &lt;some&gt; way.") ||
			c.in != 0 && !strings.Contains(page, `value="`+strings.TrimSpace(c.fields[1])) {
			t.Errorf("%s: %s", c.path, page)
		}
		w.err = errors.New("the broker is away")
		if _, page := b.post(inOne+c.path, 500, c.fields...); strings.Contains(page, "broker") ||
			!strings.Contains(page, requestID) {
			t.Errorf("%s: %s", c.path, page)
		}
	}
}

// A new key is shown in the answer to its form and nowhere else.
func TestKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("olga@example.org")
	_, page := b.post(
		inOne+"/keys", 201, "label", "Meter", "scope", "hubs:read", "scope", "events:read",
	)
	if checkPage(t, page); !strings.Contains(page, "hc_dev_keyid-and-secret") ||
		w.did[0] != "member olga: create key Meter [hubs:read events:read]" {
		t.Errorf("done %q: %s", w.did, page)
	}
	if page := b.get(inOne+"/keys", 200); strings.Contains(page, "secret") {
		t.Error(page)
	}
	w.err = domain.Errorf(domain.CodeInvalidRequest, "scopes: at least one is needed")
	if _, page := b.post(inOne+"/keys", 400, "label", "Meter"); !strings.Contains(
		page, `value="Meter"`,
	) ||
		!strings.Contains(page, "at least one scope") {
		t.Error(page)
	}
	checkPage(t, b.get(inOne+"/keys/keyid/revoke", 200))
	b.get(inOne+"/keys/another/revoke", 404)
}

// A hub that cannot be added gets an explanation.
func TestHubNotAddable(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("olga@example.org")
	if _, page := b.post(inOne+"/sites/hubs", 400, "serial", "none", "site", "site"); !strings.Contains(
		page, "not a serial",
	) ||
		len(w.did) != 0 {
		t.Errorf("done %q: %s", w.did, page)
	}
	w.err = domain.ErrHubNotAddable()
	if _, page := b.post(inOne+"/sites/hubs", 422, "serial", "hub-7k2m-q4xd-93ta", "site", "site"); !strings.Contains(
		page, "has not come online yet",
	) {
		t.Error(page)
	}
}

// The command log shows commands newest first, with sender and outcome, and no commands of the
// hub's former organization.
func TestCommandLog(t *testing.T) {
	t.Parallel()
	w := newBackend()
	page := w.open(t, nil).signIn("max@example.org").get(inOne+"/activity/commands", 200)
	at := 0
	for _, text := range []string{
		"API key another", "Lock", "no answer from the hub", "it is silent", "olga@example.org",
		"Mode", "accepted",
	} {
		next := strings.Index(page[at:], text)
		if next < 0 {
			t.Fatalf("after %d there is no %q: %s", at, text, page)
		}
		at += next
	}
	if strings.Contains(page, "foreign") {
		t.Error(page)
	}
}

// Members see their organizations. People can create organizations only if sign-up is open.
func TestOrganizations(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("olga@example.org")
	if page := b.get("/portal/organizations", 200); !strings.Contains(page, "Mill") ||
		!strings.Contains(page, "Quay") ||
		strings.Contains(page, "New organization") {
		t.Error(page)
	}
	b.get("/portal/organizations/new", 403)
	b.post("/portal/organizations", 403, "name", "Pier")
	open := w.open(t, func(c *portal.Config) { c.OpenSignUp = true }).signIn("new@example.org")
	checkPage(t, open.get("/portal/organizations", 200))
	checkPage(t, open.get("/portal/organizations/new", 200))
	if to, _ := open.post("/portal/organizations", 303, "name", "Pier"); to != "/portal/"+orgTwo+"/sites" ||
		w.did[0] != "member : create organization Pier new@example.org" {
		t.Errorf("to %q, done %q", to, w.did)
	}
	w.err = domain.Errorf(domain.CodeInvalidRequest, "name: must not be empty")
	_, page := open.post("/portal/organizations", 400, "name", "")
	checkPage(t, page)
}

// A rejected form left its action's address in the address bar, and loading it was a 404. It
// redirects to the page of the form.
func TestFormAddressesRedirect(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("olga@example.org")
	for path, to := range map[string]string{
		"/members/max/role?find=m": "/members?find=m", "/invitations": "/members",
		"/sites/site/name": "/sites", "/sites/hubs": "/sites",
	} {
		response, _ := b.do("GET", inOne+path, nil, nil)
		at, err := url.Parse(public + inOne + path)
		if err != nil {
			t.Fatal(err)
		}
		if where, err := at.Parse(response.Header.Get("Location")); response.StatusCode != 303 ||
			err != nil ||
			where.RequestURI() != inOne+to {
			t.Errorf("%s: %d to %v, %v", path, response.StatusCode, where, err)
		}
	}
	if len(w.did) != 0 {
		t.Errorf("done: %q", w.did)
	}
}

// Members without a managing role could not leave. The last owner gets the reason on the page.
func TestMemberLeaves(t *testing.T) {
	t.Parallel()
	w := newBackend()
	b := w.open(t, nil).signIn("max@example.org")
	page := b.get(inOne+"/members", 200)
	if !strings.Contains(page, "members/max/remove") ||
		strings.Contains(page, "members/olga/remove") {
		t.Error(page)
	}
	if page := b.get(inOne+"/members/max/remove", 200); !strings.Contains(page, "Leave <bdi>Mill") {
		t.Error(page)
	}
	b.get(inOne+"/members/olga/remove", 403)
	if to, _ := b.post(inOne+"/members/max/remove", 303); to != "/portal/organizations" ||
		w.did[0] != "member max: remove max" {
		t.Errorf("to %q, done %q", to, w.did)
	}
	w.err = domain.Errorf(domain.CodeForbidden, "this is the last owner")
	_, page = b.post(inOne+"/members/max/remove", 403)
	if checkPage(t, page); !strings.Contains(page, "This is the last owner.") ||
		!strings.Contains(page, "Leave <bdi>Mill") {
		t.Error(page)
	}
}

// The portal redirects to the only organization of a person, or to the list of several.
func TestHome(t *testing.T) {
	t.Parallel()
	w := newBackend()
	for who, to := range map[string]string{
		"": "sign-in", "max@example.org": orgOne, "olga@example.org": "organizations",
	} {
		b := w.open(t, nil)
		if who != "" {
			b.signIn(who)
		}
		for path, way := range map[string]string{"/portal": "portal/", "/portal/": "./"} {
			if response, _ := b.do("GET", path, nil, nil); response.StatusCode != 303 ||
				response.Header.Get("Location") != way+to {
				t.Errorf(
					"%s at %s: %d to %s", who, path, response.StatusCode,
					response.Header.Get("Location"),
				)
			}
		}
	}
}

// The activity did not name the hub of a device, showed the new name of a renamed site or hub
// twice, and did not show whose invitation was withdrawn.
func TestActivityTexts(t *testing.T) {
	t.Parallel()
	page := newBackend().open(t, nil).signIn("max@example.org").get(inOne+"/activity", 200)
	for _, want := range []string{
		"named or placed device 2 of <b><bdi>Lobby</bdi></b> now <bdi>Hall, Attic</bdi>",
		"forgot device 3 of <b><bdi>hub-7k2m-q4xd-93ta</bdi></b>",
		"renamed a site to <bdi>Mill</bdi>",
		"renamed the site that is now <b><bdi>Mill</bdi></b> to <bdi>Mall</bdi>",
		"renamed the hub <b><bdi>hub-7k2m-q4xd-93ta</bdi></b> to <bdi>Lobby</bdi>",
		"took the name from the hub <b><bdi>hub-aaaa-bbbb-cccc</bdi></b>",
		"withdrew the invitation of <b><bdi>ben@example.org</bdi></b>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in %s", want, page)
		}
	}
}
