package operators

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

// person is a browser with cookies, for signing in.
type person struct {
	t      *testing.T
	portal string
	client *http.Client
}

// newPerson returns a browser that is not signed in.
func newPerson(t *testing.T, portal string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	harness.Must(t, err)
	return &person{t: t, portal: portal, client: &http.Client{
		Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// get loads a page.
func (p *person) get(address string) (*http.Response, string) {
	p.t.Helper()
	response, err := p.client.Get(address)
	harness.Must(p.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	harness.Must(p.t, err)
	return response, string(text)
}

// signIn signs a person in with the link from the mail.
func signIn(t *testing.T, s *harness.Service, email string) *person {
	t.Helper()
	p := newPerson(t, s.Public()+"/portal")
	link := s.For(t).SignInLink(email, func() {
		status := p.post(p.portal+"/sign-in", url.Values{"email": {email}})
		if status != http.StatusOK {
			t.Fatalf("request a sign-in link: got %d, want 200", status)
		}
	})
	if status := p.post(s.Public()+link, nil); status != http.StatusSeeOther {
		t.Fatalf("sign-in link %s: got %d, want %d", link, status, http.StatusSeeOther)
	}
	return p
}

// post sends a form and returns the status.
func (p *person) post(address string, form url.Values) (status int) {
	p.t.Helper()
	request, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	harness.Must(p.t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	return p.do(request)
}

// isSignedIn reports whether the person is signed in to the portal.
func (p *person) isSignedIn(t *testing.T) bool {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, p.portal+"/organizations", nil)
	harness.Must(t, err)
	return p.do(request) == http.StatusOK
}

// do sends a request and returns the status.
func (p *person) do(request *http.Request) int {
	p.t.Helper()
	response, err := p.client.Do(request)
	harness.Must(p.t, err)
	defer response.Body.Close()
	return response.StatusCode
}
