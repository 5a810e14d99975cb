package operators

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/nodejs"
)

// openIDProvider is a process of provider.mjs.
type openIDProvider struct {
	t      *testing.T
	issuer string
	in     io.Writer
	out    *bufio.Scanner
}

type openIDAccount struct {
	Email    string   `json:"email"`
	Verified bool     `json:"email_verified"`
	Groups   []string `json:"groups"`
}

// startOpenIDProvider starts a provider that does not answer yet.
func startOpenIDProvider(t *testing.T) *openIDProvider {
	t.Helper()
	installation := nodejs.Install(t, ".", "openid")
	program, err := os.ReadFile("provider.mjs")
	harness.Must(t, err)
	// below the installation, so that Node finds its packages
	dir, err := os.MkdirTemp(installation, "run-")
	harness.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	harness.Must(t, os.WriteFile(filepath.Join(dir, "provider.mjs"), program, 0o600))
	cmd := nodejs.Command(t, dir, "node", "provider.mjs")
	in, err := cmd.StdinPipe()
	harness.Must(t, err)
	out, err := cmd.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // killed with the test at the latest
	})
	p := &openIDProvider{t: t, in: in, out: bufio.NewScanner(out)}
	p.issuer = p.line("http://")
	return p
}

// line returns the next line of the provider that begins so.
func (p *openIDProvider) line(begin string) string {
	p.t.Helper()
	for p.out.Scan() {
		if strings.HasPrefix(p.out.Text(), begin) {
			return p.out.Text()
		}
	}
	p.t.Fatalf("the provider has ended: %v", p.out.Err())
	return ""
}

// set replaces the accounts, by subject, and the client unless it is nil.
func (p *openIDProvider) set(client map[string]any, accounts map[string]openIDAccount) {
	p.t.Helper()
	text, err := json.Marshal(map[string]any{"client": client, "accounts": accounts})
	harness.Must(p.t, err)
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		p.t.Fatal(err)
	}
	p.line("done")
}

var loginForm = regexp.MustCompile(`action="([^"]+)"`)

// visitor is a new browser that follows redirects.
func visitor(t *testing.T) *person {
	t.Helper()
	p := newPerson(t, "")
	p.client.CheckRedirect = nil
	return p
}

// signInAt signs in at the provider as a subject, and returns the page in the end.
func signInAt(t *testing.T, s *harness.Service, subject string) (*person, *http.Response, string) {
	t.Helper()
	p := visitor(t)
	response, page := p.get(s.Public() + "/portal/oidc?next=/portal/organizations")
	form := loginForm.FindStringSubmatch(page)
	if response.StatusCode != http.StatusOK || form == nil {
		t.Fatalf("login page of the provider: got %d %s", response.StatusCode, page)
	}
	address, err := response.Request.URL.Parse(form[1])
	harness.Must(t, err)
	response, err = p.client.PostForm(address.String(), url.Values{
		"prompt": {"login"}, "login": {subject}, "password": {"x"},
	})
	harness.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	harness.Must(t, err)
	return p, response, string(text)
}

// TestSignInAtProvider signs people in with a provider that is not ours: before and after it
// answers, with the access of their groups, and not without a verified address.
func TestSignInAtProvider(t *testing.T) {
	t.Parallel()
	provider := startOpenIDProvider(t)
	s := harness.Start(t)
	created := s.CLI("org", "create", "--name", "Mill", "--owner-email", "olga@example.org")[0]
	org := created["org_id"].(string)
	file := filepath.Join(t.TempDir(), "oidc.json")
	secret := filepath.Join(filepath.Dir(file), "secret")
	config, err := json.Marshal(map[string]any{
		"issuer": provider.issuer, "client_id": "hubs", "client_secret_file": "secret",
		"name": "Login", "scopes": []string{"openid", "email", "groups"},
		"groups": []map[string]string{{"group": "ops", "org": org, "role": "admin"}},
	})
	harness.Must(t, err)
	for path, text := range map[string]string{file: string(config), secret: "s3cret of a test\n"} {
		harness.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	s.Stop()
	s.Args = append(s.Args, "--oidc", file)
	s.Begin()

	// The provider does not answer: the page says so, and the owner signs in by mail.
	signInPage := func() string {
		_, page := visitor(t).get(s.Public() + "/portal/sign-in")
		return page
	}
	if page := signInPage(); !strings.Contains(page, "does not answer") {
		t.Errorf("got %s, want that the provider does not answer", page)
	}
	if !signIn(t, s, "olga@example.org").isSignedIn(t) {
		t.Error("the owner is not signed in by mail")
	}

	people := map[string]openIDAccount{
		"s-ann": {Email: "ann@example.org", Verified: true, Groups: []string{"ops"}},
		"s-eve": {Email: "olga@example.org", Groups: []string{"ops"}},
	}
	provider.set(map[string]any{
		"client_id": "hubs", "client_secret": "s3cret of a test",
		"redirect_uris": []string{s.Public() + "/portal/oidc/callback"},
		"scope":         "openid email groups",
	}, people)
	streamstest.Eventually(t, "the provider answers", func() bool {
		return !strings.Contains(signInPage(), "does not answer")
	})
	ann, response, page := signInAt(t, s, "s-ann")
	if response.StatusCode != http.StatusOK || !strings.Contains(page, "Mill") {
		t.Fatalf("Ann: got %d %s, want her organization", response.StatusCode, page)
	}
	if response, _ := ann.get(s.Public() + "/portal/" + org + "/keys"); response.StatusCode != 200 {
		t.Errorf("Ann's keys: got %d, want 200", response.StatusCode)
	}
	if _, response, page := signInAt(t, s, "s-eve"); response.StatusCode != http.StatusForbidden ||
		!strings.Contains(page, "not verified") {
		t.Errorf("Eve: got %d %s, want 403 without a verified address", response.StatusCode, page)
	}
	people["s-ann"] = openIDAccount{Email: "ann@example.org", Verified: true}
	people["s-bob"] = openIDAccount{Email: "bob@example.org", Verified: true}
	provider.set(nil, people)
	if _, response, page := signInAt(t, s, "s-ann"); response.StatusCode != http.StatusOK ||
		strings.Contains(page, "Mill") {
		t.Errorf("Ann without groups: got %d %s, want no organization", response.StatusCode, page)
	}
	if response, _ := ann.get(s.Public() + "/portal/" + org + "/keys"); response.StatusCode != 404 {
		t.Errorf("Ann without groups, in her first session: got %d, want 404", response.StatusCode)
	}
	if _, response, _ := signInAt(t, s, "s-bob"); response.StatusCode != http.StatusForbidden {
		t.Errorf("a stranger: got %d, want 403", response.StatusCode)
	}
}
