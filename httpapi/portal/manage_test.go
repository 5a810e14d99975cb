package portal_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

const inOne = "/portal/" + orgOne

// The pages of an organization hold the promises of all pages, and show names as text.
func TestPagesOfAnOrganization(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	w.mill.NewKey(t, domain.ScopeHubsRead)
	for who, manages := range map[string]bool{olga: true, max: false} {
		b := w.open(t, nil).signIn(who)
		for path, says := range map[string]string{
			"/members": "&lt;b&gt;Mill&lt;/b&gt;", "/keys": "3 hours ago", "/sites": string(ownHub),
			"/activity":          "added the hub",
			"/activity/commands": "to <b><bdi>&lt;b&gt;eco&lt;/b&gt;</bdi></b>",
		} {
			page := b.get(inOne+path, 200)
			has(t, checkPage(t, page), says)
			if forms := strings.Count(page, `method="post"`); (forms > 1) != manages &&
				!strings.HasPrefix(path, "/activity") {
				t.Errorf(
					"%s for %s: got %d forms, want more than one: %t", path, who, forms, manages,
				)
			}
		}
	}
}

// Non-members get the same page as for an unknown organization.
func TestNonMembersSeeNothing(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(max)
	foreign := b.get("/portal/"+orgTwo+"/members", 404)
	none := b.get("/portal/01940000-0000-7000-8000-000000000009/members", 404)
	token := regexp.MustCompile(`name="form_token" value="[^"]*"`) // masked anew on each page
	if token.ReplaceAllString(foreign, "") != token.ReplaceAllString(none, "") {
		t.Errorf("got %s\nwant as for an unknown organization %s", foreign, none)
	}
	b.get(inOne+"/members", 200)
	w.open(t, nil).signIn(olga).post(inOne+"/members/max/remove", 303)
	b.get(inOne+"/members", 404)
	has(t, b.get("/portal/organizations", 200), "not in an organization yet")
}

// A member without a managing role can change nothing.
func TestOnlyManagersManage(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(max)
	before := w.changes(t)
	for _, path := range []string{
		"/members/olga/role", "/invitations", "/invitations/x/revoke", "/keys",
		"/keys/keyid/revoke", "/sites", "/sites/" + site + "/name", "/sites/hubs", "/settings/name",
	} {
		_, page := b.post(inOne+path, 403)
		checkPage(t, page)
	}
	if w.changes(t) != before {
		t.Errorf("got change %q, want none", w.lastChange(t, w.mill))
	}
}

// An action is recorded for the member who is signed in and redirects to a page with a notice. A
// rejected form is shown again with the error.
func TestActions(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	key, _ := w.mill.NewKey(t, domain.ScopeHubsRead)
	serial := strings.ReplaceAll(string(w.hub), "-", "")
	for _, c := range []struct { // in order: the last removes max
		path   string
		fields []string
		change string
		to     string
		// fake reports that the directory is made to reject the action, and to fail.
		fake bool
	}{
		{
			"/members/max/role", []string{"role", "admin"},
			"org.member_role_changed " + max + " admin", "/members", false,
		},
		{
			"/invitations", []string{"email", "ann@example.org", "role", "admin"},
			"org.invited ann@example.org admin", "/members", false,
		},
		{"/keys/" + key + "/revoke", nil, "key.revoked test", "/keys", false},
		{"/sites", []string{"name", " Quarry "}, "site.created Quarry", "/sites", true},
		{
			"/sites/hubs", []string{"serial", serial, "site", w.newSite(t)},
			"hub.moved " + string(ownHub) + " Far", "/hubs/" + string(ownHub), false,
		},
		{"/members/max/remove", nil, "org.member_removed " + max, "/members", true},
	} {
		if c.fake {
			w.err = domain.Errorf(domain.CodeInvalidRequest, "field: is wrong in <some> way")
			_, page := b.post(inOne+c.path, 400, c.fields...)
			has(t, checkPage(t, page), "It is wrong in &lt;some&gt; way.")
			if c.fields != nil {
				has(t, page, `value="`+strings.TrimSpace(c.fields[1]))
			}
			w.err = errors.New("the broker is away")
			_, page = b.post(inOne+c.path, 500, c.fields...)
			lacks(t, has(t, page, requestID), "broker")
			w.err = context.DeadlineExceeded
			_, page = b.post(inOne+c.path, 503, c.fields...)
			has(t, page, "not responding")
			w.err = nil
		}
		to, _ := b.post(inOne+c.path, 303, c.fields...)
		if to != inOne+c.to {
			t.Errorf("%s: redirected to %q, want %q", c.path, to, inOne+c.to)
		}
		w.wantChange(t, olga+": "+c.change)
		has(t, b.get(to, 200), `role="status"`)
	}
}

// Adding a hub that the organization had already said "Hub added". The notice names the hub, its site
// and what changed, and goes on to pairing.
func TestHubAddedAgain(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	far := w.newSite(t)
	for _, c := range []struct{ site, name, want string }{
		{site, "", "Nothing to change: hub-"}, {site, "Gate", "Renamed to Gate, at"},
		{far, "Gate", "Gate was moved to Far"},
		{site, "Mill gate", "Renamed to Mill gate and moved to"},
	} {
		to, _ := b.post(
			inOne+"/sites/hubs", 303, "serial", string(ownHub), "site", c.site, "name", c.name,
		)
		page := b.get(to, 200)
		if checkPage(t, page); !strings.Contains(page, c.want) ||
			to != inOne+"/hubs/"+string(ownHub) || !strings.Contains(page, `href="#joining">Pair devices`) {
			t.Errorf("got %s: %s, want %q and a link to pairing", to, page, c.want)
		}
	}
	// The site is asked, and only its page may use the camera.
	_, page := b.post(inOne+"/sites/hubs", 400, "serial", string(ownHub), "site", "")
	has(t, checkPage(t, page), "Choose the site where the hub is.", `<option value="">Choose a site`)
	for path, want := range map[string]string{"/sites": "camera=(self)", "/members": "camera=()"} {
		response, _ := b.do("GET", inOne+path, nil, nil)
		if got := response.Header.Get("Permissions-Policy"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got Permissions-Policy %q, want %s", path, got, want)
		}
	}
}

// A new key is shown in the answer to its form and nowhere else.
func TestKeyIsShownOnce(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	_, page := b.post(
		inOne+"/keys", 201, "label", "Meter", "scope", "hubs:read", "scope", "events:read",
	)
	checkPage(t, page)
	key, err := domain.ParseKey(apiKey.FindString(page))
	if err != nil {
		t.Fatalf("got %s, %v, want an API key on it", page, err)
	}
	w.wantChange(t, olga+": key.created Meter hubs:read, events:read")
	lacks(t, b.get(inOne+"/keys", 200), key.Secret)
	_, page = b.post(inOne+"/keys", 400, "label", "Meter")
	has(t, page, `value="Meter"`, "at least one scope")
	checkPage(t, b.get(inOne+"/keys/"+key.ID+"/revoke", 200))
	b.get(inOne+"/keys/another/revoke", 404)
}

// apiKey matches an API key on a page.
var apiKey = regexp.MustCompile(`hc_dev_[0-9A-Za-z_]+`)

// The command log shows commands newest first, with sender and outcome, and no commands of the
// hub's former organization.
func TestCommandLog(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	page := w.open(t, nil).signIn(max).get(inOne+"/activity/commands", 200)
	at := 0
	for _, text := range []string{
		"API key another", "Lock", "No answer from the hub", "it is silent", "olga@example.org",
		"Mode", "no report from the device",
	} {
		next := strings.Index(page[at:], text)
		if next < 0 {
			t.Fatalf("got %s, want %q after byte %d", page, text, at)
		}
		at += next
	}
	lacks(t, page, "foreign")
}

// Members see their organizations. People can create organizations only if sign-up is open.
func TestOrganizations(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	lacks(t, has(t, b.get("/portal/organizations", 200), "Mill", "Quay"), "New organization")
	b.get("/portal/organizations/new", 403)
	b.post("/portal/organizations", 403, "name", "Pier")
	open := w.open(t, func(c *portal.Config) { c.OpenSignUp = true }).signIn("new@example.org")
	checkPage(t, open.get("/portal/organizations", 200))
	checkPage(t, open.get("/portal/organizations/new", 200))
	to, _ := open.post("/portal/organizations", 303, "name", "Pier")
	memberships := w.Access.Memberships(w.toReal.Replace("new@example.org"))
	if len(memberships) != 1 || memberships[0].Role != domain.RoleOwner ||
		memberships[0].OrgName != "Pier" || to != "/portal/"+memberships[0].OrgID+"/sites" {
		t.Errorf("redirected to %q with memberships %+v, want an owner of Pier", to, memberships)
	}
	_, page := open.post("/portal/organizations", 400, "name", "")
	checkPage(t, page)
}

// Members without a managing role could not leave. The last owner gets the reason on the page.
func TestMemberLeaves(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(max)
	page := b.get(inOne+"/members", 200)
	lacks(t, has(t, page, "members/max/remove"), "members/olga/remove")
	has(t, b.get(inOne+"/members/max/remove", 200), "Leave <bdi>")
	b.get(inOne+"/members/olga/remove", 403)
	if to, _ := b.post(inOne+"/members/max/remove", 303); to != "/portal/organizations" {
		t.Errorf("redirected to %q, want /portal/organizations", to)
	}
	w.wantChange(t, max+": org.member_removed "+max)
	_, page = w.open(t, nil).signIn(olga).post(inOne+"/members/olga/remove", 403)
	has(t, checkPage(t, page), "last owner", "Leave <bdi>")
}

// The portal redirects to the only organization of a person, or to the list of several.
func TestHome(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	for who, to := range map[string]string{
		"": "sign-in", max: orgOne, olga: "organizations",
	} {
		b := w.open(t, nil)
		if who != "" {
			b.signIn(who)
		}
		for path, way := range map[string]string{"/portal": "portal/", "/portal/": "./"} {
			if response, _ := b.do("GET", path, nil, nil); response.StatusCode != 303 ||
				response.Header.Get("Location") != way+to {
				t.Errorf(
					"%q at %s: got %d to %s, want 303 to %s", who, path, response.StatusCode,
					response.Header.Get("Location"), way+to,
				)
			}
		}
	}
}

// TestNaturalOrder checks that sites are in the order of their names, and numbers in the order of
// their values.
func TestNaturalOrder(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	by := domain.Origin{Actor: domain.Actor{Kind: domain.ActorMember, ID: w.mill.Owner.ID}}
	for _, name := range []string{"Floor 10", "Floor 2", "annex"} {
		if _, err := w.Backend.Directory.CreateSite(t.Context(), by, w.mill.ID, name); err != nil {
			t.Fatal(err)
		}
	}
	for path, before := range map[string]string{"": `id="sites"`, "/sites": `<h2 id="sites">`} {
		page := w.open(t, nil).signIn(max).get(inOne+path, 200)
		_, list, _ := strings.Cut(page, before)
		annex, second, tenth := strings.Index(list, "annex"), strings.Index(list, "Floor 2"),
			strings.Index(list, "Floor 10")
		if annex < 0 || annex > second || second > tenth {
			t.Errorf("%q: got annex at %d, Floor 2 at %d, Floor 10 at %d, want this order", path,
				annex, second, tenth)
		}
	}
}

// The activity did not name the hub and the device, showed the new name of a renamed site or hub
// twice, and did not show whose invitation was withdrawn.
func TestActivityTexts(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	ctx, directory := t.Context(), w.Backend.Directory
	by := domain.Origin{Actor: domain.Actor{Kind: domain.ActorMember, ID: w.mill.Owner.ID}}
	must := func(_ any, err error) {
		t.Helper()
		streamstest.Must(t, err)
	}
	invited, err := directory.Invite(ctx, by, w.mill.ID, "ben@example.org", domain.AccessMember)
	must(nil, err)
	must(nil, directory.RevokeInvitation(ctx, by, w.mill.ID, invited.ID))
	lobby, hall, attic := "Lobby", "Hall", "Attic"
	named := domain.UpdateHub{OrgID: w.mill.ID, HubID: w.hub, SetName: true}
	nameless := named
	named.Name = &lobby
	must(directory.UpdateHub(ctx, by, named))
	must(directory.UpdateHub(ctx, by, nameless))
	must(directory.LabelDevice(ctx, by, domain.LabelDevice{
		OrgID: w.mill.ID, HubID: w.hub, DeviceID: 2, SetName: true, Name: &hall, SetRoom: true,
		Room: &attic,
	}))
	must(directory.LabelDevice(ctx, by, domain.LabelDevice{
		OrgID: w.mill.ID, HubID: w.hub, DeviceID: 3, SetName: true, Name: &hall,
	}))
	must(nil, directory.ForgetDevices(ctx, by, w.hub, []int64{3}))
	must(directory.UpdateHub(ctx, by, named))
	for _, name := range []string{"Mall", "Mill!"} {
		must(directory.RenameSite(ctx, by, w.mill.ID, w.mill.SiteID, name))
	}
	page := w.open(t, nil).signIn(max).get(inOne+"/activity", 200)
	has(
		t, page, "named or placed <b><bdi>Hall (Lobby)</bdi></b>, now <bdi>Hall, Attic</bdi>",
		`removed <b><bdi>Device 3 (Lobby)</bdi></b> from the list of its hub</span> `+
			`<span class="quiet"><bdi>Mill!</bdi> · <time`,
		"renamed a site to <bdi>Mill!</bdi>",
		"renamed the site that is now <b><bdi>Mill!</bdi></b> to <bdi>Mall</bdi>",
		"renamed the hub <b><bdi>hub-7k2m-q4xd-93ta</bdi></b> to <bdi>Lobby</bdi>",
		"removed the name of the hub <b><bdi>hub-7k2m-q4xd-93ta</bdi></b>",
		"withdrew the invitation of <b><bdi>ben@example.org</bdi></b>",
	)
}
