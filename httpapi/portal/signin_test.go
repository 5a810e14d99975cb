package portal_test

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// A link signs in once, behind a button, and redirects to the page that was requested.
func TestSignInByMail(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil)
	response, _ := b.do("GET", "/portal/"+orgOne+"/keys", nil, nil)
	if to := response.Header.Get("Location"); response.StatusCode != 303 ||
		to != "../sign-in?next="+url.QueryEscape("/portal/"+orgOne+"/keys") {
		t.Fatalf("got %d to %q, want 303 to the sign-in", response.StatusCode, to)
	}
	checkPage(t, b.get("/portal/sign-in?next=/portal/"+orgOne+"/keys", 200))
	_, page := b.post(
		"/portal/sign-in", 200, "email", " Olga@Example.org ", "next", "/portal/"+orgOne+"/keys",
	)
	checkPage(t, page)
	address, link, _ := strings.Cut(w.mails[0], " ")
	path, ours := strings.CutPrefix(link, public)
	if address != "Olga@Example.org" || !ours {
		t.Fatalf("got mails %q, want one to Olga@Example.org", w.mails)
	}
	for range 2 { // looking uses nothing up
		if response, _ := b.do("HEAD", path, nil, nil); response.StatusCode != 200 {
			t.Errorf("HEAD: got %d, want 200", response.StatusCode)
		}
		if response, _ := b.do("GET", path, nil, http.Header{
			"Sec-Purpose": {"prefetch"},
		}); response.StatusCode != 503 {
			t.Errorf("prefetch: got %d, want 503", response.StatusCode)
		}
		page := b.get(path, 200)
		if checkPage(t, page); !strings.Contains(page, "Olga@Example.org") ||
			len(b.cookies) != 0 {
			t.Errorf("got cookies %v, %s, want none and the address", b.cookies, page)
		}
	}
	if to, _ := b.post(path, 303); to != "/portal/"+orgOne+"/keys" {
		t.Errorf("got redirect to %q, want the page of keys", to)
	}
	b.get("/portal/"+orgOne+"/keys", 200)
	thief := b.newBrowser()
	checkPage(t, thief.get(path, 410))
	thief.post(path, 410)
	if len(thief.cookies) != 0 {
		t.Errorf("used link: got cookies %v, want none", thief.cookies)
	}
}

// Requesting a link gets the same answer for every address. Whether a mail is sent is decided
// later.
func TestAccountsAreNotRevealed(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil)
	_, known := b.post("/portal/sign-in", 200, "email", "olga@example.org")
	_, unknown := b.post("/portal/sign-in", 200, "email", "nemo@example.org")
	if strings.ReplaceAll(unknown, "nemo@", "olga@") != known || len(w.mails) != 2 {
		t.Errorf("got for a member %s\nand for a stranger %s\nwant the same", known, unknown)
	}
	cfg := portal.Config{People: w.Access, Directory: w, PublicURL: public}
	p := portal.New(cfg)
	cfg.OpenSignUp = true
	open := portal.New(cfg)
	w.newAccount(t, w.toReal.Replace("left@example.org"))
	for email, stored := range map[string]string{
		"Olga@Example.org": "olga@example.org", "LEFT@example.org": "left@example.org",
		"nemo@example.org": "",
	} {
		email, stored = w.toReal.Replace(email), w.toReal.Replace(stored)
		if got, err := p.SignInAddress(t.Context(), email); got != stored || err != nil {
			t.Errorf("SignInAddress(%s): got %q, %v, want %q", email, got, err, stored)
		}
		want := cmp.Or(stored, email)
		if got, err := open.SignInAddress(t.Context(), email); got != want || err != nil {
			t.Errorf(
				"with open sign-up: SignInAddress(%s): got %q, %v, want %q", email, got, err, want,
			)
		}
	}
	// Somebody who lost the membership in the meantime is not let in by the link.
	b.post(w.mailedPath(), 410)
}

// A link was mailed to the address as typed, and signed in to the account that compared as equal.
// The link must be mailed to the account's own address, and sign in to no other account.
func TestLinkGoesToStoredAddress(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	w.toReal = strings.NewReplacer() // the domains of these addresses matter
	w.newAccount(t, "ann@stra\u00dfe.example")
	w.newAccount(t, "Bob@example.org")
	open := portal.New(portal.Config{
		People: w.Access, Directory: w, PublicURL: public, OpenSignUp: true,
	})
	for typed, stored := range map[string]string{
		"ann@stra\u1e9ee.example":     "ann@strasse.example", // nobody's yet: a new account
		"ann@stra\u00dfe.example":     "ann@stra\u00dfe.example",
		"ANN@xn--strae-oqa.example":   "ann@stra\u00dfe.example",
		"bob@EXAMPLE.org":             "Bob@example.org",
		"\u0130smail@example.org":     "\u0130smail@example.org",
		"bob@\uff45xample\u3002org":   "Bob@example.org",
		"ann@stra\u00dfe.example.org": "ann@stra\u00dfe.example.org",
	} {
		b := w.open(t, func(c *portal.Config) { c.OpenSignUp = true })
		b.post("/portal/sign-in", 200, "email", typed)
		address, _, _ := strings.Cut(w.mails[len(w.mails)-1], " ")
		if to, err := open.SignInAddress(t.Context(), address); to != stored || err != nil {
			t.Errorf("link for %+q: got address %+q, %v, want %+q", typed, to, err, stored)
		}
		b.post(w.mailedPath(), 303)
		if signedIn := b.session().Email; signedIn != stored {
			t.Errorf("link for %+q: got session of %+q, want %+q", typed, signedIn, stored)
		}
	}
	// The account was made after the link's mail went out to another spelling of its address.
	b := w.open(t, func(c *portal.Config) { c.OpenSignUp = true })
	late := string(w.hub) + "@example.org"
	b.post("/portal/sign-in", 200, "email", strings.ToUpper(late[:1])+late[1:])
	w.newAccount(t, late)
	b.post(w.mailedPath(), 410)
}

// Requests for links are limited per address and per network, whether or not the address has an
// account.
func TestSignInIsLimited(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil)
	for range 5 {
		b.post("/portal/sign-in", 200, "email", "nemo@example.org")
	}
	_, page := b.post("/portal/sign-in", 429, "email", "NEMO@example.org")
	// The form is shown again with the address: a page without a form was a dead end.
	has(t, page, `value="NEMO@example.org"`, "try again in 6 minutes")
	checkPage(t, page)
	for i := range 14 {
		b.post("/portal/sign-in", 200, "email", "a"+strings.Repeat("b", i)+"@example.org")
	}
	b.post("/portal/sign-in", 429, "email", "olga@example.org")
	w.advance(time.Hour)
	b.post("/portal/sign-in", 200, "email", "olga@example.org")
	_, page = b.post("/portal/sign-in", 400, "email", "no address")
	has(t, checkPage(t, page), `value="no address"`, "aria-invalid")
}

// Each sign-in creates a session and ends the previous one. Signing out and expiry end it too.
func TestSession(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil)
	planted, err := w.Begin(t.Context(), domain.PortalSession{
		Email: "eve@example.org", CreatedAt: w.clock(), ExpiresAt: w.clock().Add(time.Hour),
	})
	streamstest.Must(t, err)
	b.cookies["hubcloud_session"] = planted
	b.signIn(olga)
	if _, err := w.Session(t.Context(), planted, w.clock()); err == nil ||
		b.cookies["hubcloud_session"] == planted {
		t.Error("the planted session still exists, want it ended by the sign-in")
	}
	first := b.cookies["hubcloud_session"]
	thief := b.newBrowser()
	thief.cookies["hubcloud_session"] = first
	if to, _ := b.post("/portal/sign-out", 303); to != "/portal/sign-in" {
		t.Errorf("signing out: redirected to %q, want /portal/sign-in", to)
	}
	for i, want := range []bool{true, false} {
		page := b.get("/portal/sign-in", 200)
		if got := strings.Contains(page, "You are signed out."); got != want {
			t.Errorf("load %d: got notice: %t, want %t", i, got, want)
		}
	}
	thief.get("/portal/organizations", 303)
	b.signIn(olga)
	w.advance(portal.SessionLifetime)
	b.get("/portal/organizations", 303)
	b.cookies["hubcloud_session"] = "of another installation"
	b.get("/portal/organizations", 303)
}

// A form that was not sent from a page of the session changes nothing.
func TestForgedForms(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	b := w.open(t, nil).signIn(olga)
	before := w.changes(t)
	path, form := "/portal/"+orgOne+"/members/max/remove", url.Values{
		"form_token": {portal.MaskToken(b.session().FormToken)},
	}
	for name, try := range map[string]struct {
		form   url.Values
		header http.Header
	}{
		"no token":           {url.Values{}, nil},
		"another's token":    {url.Values{"form_token": {"x"}}, nil},
		"from another site":  {form, http.Header{"Sec-Fetch-Site": {"cross-site"}}},
		"from a host beside": {form, http.Header{"Sec-Fetch-Site": {"same-site"}}},
		"from another origin": {
			form, http.Header{"Sec-Fetch-Site": nil, "Origin": {"https://evil.example"}},
		},
		"from an unknown page": {form, http.Header{"Sec-Fetch-Site": nil, "Origin": {"null"}}},
	} {
		response, page := b.do("POST", path, try.form, try.header)
		if response.StatusCode != 403 || w.changes(t) != before {
			t.Errorf(
				"%s: got %d and change %q, want 403 and none", name, response.StatusCode,
				w.lastChange(t, w.mill),
			)
		}
		checkPage(t, page)
	}
	stolen := url.Values{"form_token": {"x"}, "position": {"none"}}
	if response, _ := b.do("POST", inOne+"/stream", stolen, nil); response.StatusCode != 403 {
		t.Errorf("a stream with a forged form: got %d, want 403", response.StatusCode)
	}
	if response, _ := b.do("POST", path, form, http.Header{
		"Sec-Fetch-Site": nil, "Origin": {public},
	}); response.StatusCode != 303 || w.changes(t) == before {
		t.Errorf("from the portal: got %d, want 303 and a change", response.StatusCode)
	}
}

// Signing in redirects only to pages of the portal.
func TestNoOpenRedirect(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	for _, next := range []string{
		"https://evil.example/portal/", "//evil.example/portal/x", "/portal//evil.example",
		`/portal/\evil.example`, "/portal/../../evil", "/portal/./x",
		"/portal/%2e%2e/x", "/portal/x?y=%zz", "/portal/x?y;z", "/portal/x#y", "javascript:alert(1)", "/v1/hubs",
		"/portal/", "/portal", "portal/x", "/portal/x\r\nSet-Cookie: a=b",
	} {
		b := w.open(t, nil)
		b.post("/portal/sign-in", 200, "email", "olga@example.org", "next", next)
		if to, _ := b.post(w.mailedPath(), 303); to != "/portal/organizations" {
			t.Errorf("next %q: redirected to %q, want /portal/organizations", next, to)
		}
		w.advance(time.Hour) // links are limited per address
	}
}

// Cookies are Secure, except for a service on the browser's own machine.
func TestCookiesAreSecure(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	for address, name := range map[string]string{
		"https://hubs.example.org": "__Host-hubcloud_session",
		"http://hubs.example.org":  "__Host-hubcloud_session",
		"https://localhost":        "__Host-hubcloud_session",
		"http://127.0.0.1:8080":    "hubcloud_session", "http://[::1]:8080": "hubcloud_session",
		"http://localhost:8080": "hubcloud_session",
	} {
		b := w.open(t, func(c *portal.Config) { c.PublicURL = address })
		response, _ := b.do("GET", "/portal/sign-in/"+w.newLink(t, max, true), nil, nil)
		if to := response.Header.Get("Location"); response.StatusCode != 303 || to != "../"+orgOne {
			t.Errorf(
				"%s: got %d to %q, want 303 to ../%s", address, response.StatusCode, to, orgOne,
			)
		}
		if cookie := response.Cookies()[0]; cookie.Name != name ||
			cookie.Secure != strings.HasPrefix(name, "__Host-") {
			t.Errorf("%s: got cookie %v, want %s", address, cookie, name)
		}
	}
}

// The pages of links and invitations did not show that the browser was signed in as somebody else,
// and the sign-in page did not show that it was signed in already.
func TestPagesShowWhoIsSignedIn(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	var asked *invitations
	b := w.open(t, func(c *portal.Config) {
		asked = &invitations{
			acceptance: domain.Acceptance{
				OrgID:   w.quay.ID,
				OrgName: "Quay",
				Email:   w.toReal.Replace("Max@example.org"),
				Access:  domain.AccessMember,
			},
		}
		c.Invitations = asked
	})
	said := func(path, text string, want bool) {
		t.Helper()
		if page := b.get(path, 200); strings.Contains(page, text) != want {
			t.Errorf("%s: got %s, want %q in it: %t", path, page, text, want)
		}
	}
	link := "/portal/sign-in/" + w.newLink(t, max, false)
	said("/portal/sign-in", "You are signed in", false)
	said(link, "You are signed in", false)
	said("/portal/invitations/x", "You are signed in", false)
	b.signIn(olga)
	said("/portal/sign-in", "You are signed in as <b><bdi dir=\"ltr\">olga@example.org", true)
	said("/portal/sign-in?next=/portal/"+orgOne+"/keys", `href="./`+orgOne+`/keys">Continue`, true)
	said(link, "signed out of that account", true)
	said("/portal/invitations/x", "signed in with another account", true)
	b.signIn(max)
	said(link, "signed out of that account", false)
	said("/portal/invitations/x", `href="../`+orgTwo+`">Open`, true)
	if len(asked.asked) != 3 {
		t.Errorf("got %d acceptances, want 3", len(asked.asked))
	}
}

// The link of an invitation only joined, so that a second mail was needed to sign in. It signs in once,
// until it expires, and to the account whose address it was mailed to. Looking at it, as mail scanners
// do, does not use it up.
func TestInvitationSignsIn(t *testing.T) {
	t.Parallel()
	w := newBackend(t)
	now := time.Now()
	invited := domain.Acceptance{
		OrgID: w.quay.ID, OrgName: "Quay", Email: w.toReal.Replace(max), Access: domain.AccessMember,
		InvitedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	w.newAccount(t, invited.Email)
	asked := &invitations{acceptance: invited}
	b := w.open(t, func(c *portal.Config) { c.Invitations = asked })
	const link = "/portal/invitations/x"
	used := func(link, why string) {
		t.Helper()
		other := b.newBrowser()
		to, _ := other.post(link, 303)
		if !strings.HasPrefix(to, "/portal/sign-in?email=") || !strings.Contains(other.get(to, 200), "Sign in here.") {
			t.Errorf("%s: got a redirect to %q, want one to the sign-in page, which says why", why, to)
		}
		if response, _ := other.do("GET", "/portal/organizations", nil, nil); response.StatusCode != 303 {
			t.Errorf("%s: got signed in", why)
		}
	}
	for range 2 {
		page := b.get(link, 200)
		if checkPage(t, page); !strings.Contains(page, "Sign in as") || len(b.cookies) != 0 {
			t.Errorf("got cookies %v, %s, want none and the button", b.cookies, page)
		}
	}
	if to, _ := b.post(link, 303); to != "/portal/"+orgTwo || b.session().Email != max {
		t.Errorf("got a redirect to %q as %s, want the organization as %s", to, b.session().Email, max)
	}
	used(link, "used")
	b.get("/portal/invitations/seen", 200) // who is signed in needs the link no more
	used("/portal/invitations/seen", "opened while signed in")

	expired, newer := invited, invited
	expired.ExpiresAt = now.Add(-time.Second)
	asked.acceptance = expired
	lacks(t, b.newBrowser().get(link, 200), "Sign in as")
	used("/portal/invitations/expired", "expired")
	// The mail went to the invited spelling, and the account of another spelling is newer.
	newer.Email, newer.InvitedAt = strings.ToUpper(invited.Email[:1])+invited.Email[1:], now.Add(-time.Hour)
	asked.acceptance = newer
	used("/portal/invitations/newer", "another spelling")
	asked.err = domain.ErrInvitationNotFound()
	b.newBrowser().post("/portal/invitations/gone", 404)
}
