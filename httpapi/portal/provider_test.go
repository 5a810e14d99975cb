package portal_test

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
)

const atProvider = "https://login.example.org/authorize"

// testProvider is an identity provider that signs in the person that a test sets.
type testProvider struct {
	answers bool
	person  domain.ProvenPerson
	err     error
}

func (p *testProvider) Issuer() string              { return "https://login.example.org" }
func (p *testProvider) Name() string                { return "<b>Login</b>" }
func (p *testProvider) ConfirmEvery() time.Duration { return time.Hour }
func (p *testProvider) Answers() bool               { return p.answers }
func (p *testProvider) SignOutURL() string          { return "https://login.example.org/end" }

func (p *testProvider) Begin() (string, domain.SignInAttempt, error) {
	return atProvider, domain.SignInAttempt{State: "s"}, p.err
}

func (p *testProvider) Finish(
	_ context.Context, attempt domain.SignInAttempt, query url.Values,
) (domain.ProvenPerson, error) {
	if attempt.State != "s" || query.Get("state") != "s" {
		return domain.ProvenPerson{}, domain.Errorf(domain.CodeUnauthenticated, "another attempt")
	}
	return p.person, p.err
}

// is makes the provider sign in a person with these accesses in the first organization.
func (p *testProvider) is(w *backend, subject, email string, access ...domain.Access) {
	p.person = domain.ProvenPerson{
		Identity: domain.Identity{Issuer: p.Issuer(), Subject: w.mill.ID + subject},
		Email:    w.toReal.Replace(email), Access: map[string]domain.Access{},
	}
	for _, a := range access {
		p.person.Access[w.mill.ID] = a
	}
}

// openWith returns a browser on a portal with the provider.
func (p *testProvider) openWith(t *testing.T, w *backend) *browser {
	return w.open(t, func(c *portal.Config) { c.Provider = p })
}

// signInAtProvider goes to the provider and back, and returns where the answer redirects to.
func (b *browser) signInAtProvider(next string, status int) (to, page string) {
	b.t.Helper()
	response, _ := b.do("GET", "/portal/oidc?next="+url.QueryEscape(next), nil, nil)
	if to := response.Header.Get("Location"); response.StatusCode != 303 || to != atProvider {
		b.t.Fatalf("got %d to %q, want 303 to the provider", response.StatusCode, to)
	}
	response, page = b.do("GET", "/portal/oidc/callback?code=c&state=s", nil, nil)
	if response.StatusCode != status {
		b.t.Errorf("callback: got %d %s, want %d", response.StatusCode, page, status)
	}
	return response.Header.Get("Location"), page
}

// A person signs in at the provider, returns to the requested page, must be confirmed again in
// time, and signs out.
func TestSignInAtProvider(t *testing.T) {
	t.Parallel()
	w, p := newBackend(t), &testProvider{answers: true}
	p.is(w, "max", "Max@example.org")
	b := p.openWith(t, w)
	checkPage(t, b.get("/portal/sign-in?next=/portal/"+orgOne+"/sites", 200))
	if to, _ := b.signInAtProvider("/portal/"+orgOne+"/sites", 303); to != "../"+orgOne+"/sites" {
		t.Errorf("got redirect to %q, want the page of sites", to)
	}
	if got := b.session().Email; got != max {
		t.Errorf("signed in as %q, want the member's own address", got)
	}
	b.get("/portal/"+orgOne+"/sites", 200)
	response, _ := b.do("GET", "/portal/oidc/callback?code=c&state=s", nil, nil)
	if response.StatusCode != 401 {
		t.Errorf("the same answer again: got %d, want 401", response.StatusCode)
	}

	w.advance(time.Hour)
	response, _ = b.do("GET", "/portal/"+orgOne+"/sites", nil, nil)
	if to := response.Header.Get("Location"); response.StatusCode != 303 ||
		!strings.HasPrefix(to, "../oidc?next=") {
		t.Errorf("after an hour: got %d to %q, want 303 to the provider", response.StatusCode, to)
	}
	p.answers = false
	response, _ = b.do("GET", "/portal/"+orgOne+"/sites", nil, nil)
	if to := response.Header.Get("Location"); !strings.HasPrefix(to, "../sign-in?next=") {
		t.Errorf("a provider that is away: got redirect to %q, want the sign-in page", to)
	}
	has(t, b.get("/portal/sign-in", 200), "does not answer")
	p.err = domain.Unavailable("it is away")
	if response, _ := b.do("GET", "/portal/oidc", nil, nil); response.StatusCode != 503 {
		t.Errorf("a provider that is not known: got %d, want 503", response.StatusCode)
	}
	p.answers, p.err = true, nil
	b.signInAtProvider("", 303)
	to, _ := b.post("/portal/sign-out", 303)
	page := b.get(to, 200)
	has(t, page, p.SignOutURL(), "&lt;b&gt;Login")
	b.get("/portal/"+orgOne+"/sites", 303)
	w.open(t, nil).get("/portal/oidc", 404)
}

// What groups allow takes effect at the next sign-in. Who has neither an account nor access is not
// signed in, and an address does not pass to another person together with its memberships.
func TestGroupsOfProvider(t *testing.T) {
	t.Parallel()
	w, p := newBackend(t), &testProvider{answers: true}
	b := p.openWith(t, w)
	p.is(w, "gus", "gus@example.org")
	b.signInAtProvider("", 403)
	p.is(w, "gus", "gus@example.org", domain.AccessAdmin)
	if to, _ := b.signInAtProvider("", 303); to != "../"+orgOne {
		t.Errorf("got redirect to %q, want the organization", to)
	}
	b.get("/portal/"+orgOne+"/keys", 200)
	w.wantChange(t, ": org.member_added gus@example.org admin")
	people := b.get("/portal/"+orgOne+"/members", 200)
	if n := strings.Count(people, "by a group of &lt;b&gt;Login"); n != 1 {
		t.Errorf("people: got %d marked as by a group, want gus alone: %s", n, people)
	}
	link := regexp.MustCompile(`/members/([^/"]+)/remove">Leave`).FindStringSubmatch(people)
	has(
		t, b.get("/portal/"+orgOne+"/members/"+link[1]+"/remove", 200),
		"from a group at &lt;b&gt;Login",
	)
	p.is(w, "another", "gus@example.org", domain.AccessOwner)
	thief := b.newBrowser()
	thief.signInAtProvider("", 403)

	// The person is known by the subject, whatever the address is now.
	p.is(w, "gus", "olga@example.org", domain.AccessViewer)
	b.signInAtProvider("", 303)
	if got := b.session().Email; got != "gus@example.org" {
		t.Errorf("signed in as %q, want gus", got)
	}
	p.is(w, "gus", "gus@example.org")
	b.signInAtProvider("", 303)
	b.get("/portal/"+orgOne+"/sites", 404)

	// Without memberships the address has nothing to take over.
	p.is(w, "another", "gus@example.org", domain.AccessMember)
	thief.signInAtProvider("", 303)
	p.is(w, "gus", "gus@example.org")
	b.signInAtProvider("", 403)
}

// People who have signed in at the provider get no link by mail, and their sessions that one began
// end. Owners always get one.
func TestMailBesidesProvider(t *testing.T) {
	t.Parallel()
	w, p := newBackend(t), &testProvider{answers: true}
	config := portal.Config{People: w.Access, Directory: w, PublicURL: public, Provider: p}
	byMail := p.openWith(t, w).signIn(max)
	byMail.get("/portal/"+orgOne+"/sites", 200)
	early := w.newLink(t, max, false)
	for _, name := range []string{"max", "olga"} {
		p.is(w, name, name+"@example.org")
		byMail.newBrowser().signInAtProvider("", 303)
	}
	for email, want := range map[string]string{
		olga: w.toReal.Replace(olga), max: "", "nemo@example.org": "",
	} {
		got, err := config.SignInAddress(t.Context(), w.toReal.Replace(email))
		if got != want || err != nil {
			t.Errorf("SignInAddress(%s): got %q, %v, want %q", email, got, err, want)
		}
	}
	byMail.get("/portal/"+orgOne+"/sites", 303)
	byMail.post("/portal/sign-in/"+early, 410)
	p.openWith(t, w).signIn(olga).get("/portal/"+orgOne+"/sites", 200)
	// Without the provider everybody gets a link again.
	config.Provider = nil
	if got, err := config.SignInAddress(t.Context(), w.toReal.Replace(max)); got == "" || err != nil {
		t.Errorf("SignInAddress without a provider: got %q, %v, want the address", got, err)
	}
}
