package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// welcoming accepts every invitation but "none".
type welcoming struct{}

func (welcoming) AcceptInvitation(
	_ context.Context, o domain.Origin, token string,
) (domain.Acceptance, error) {
	if token == "none" || o.RequestID == "" {
		return domain.Acceptance{}, domain.ErrInvitationNotFound()
	}
	return domain.Acceptance{
		OrgName: "Acme",
		Email:   "ann@example.org",
		Access:  domain.AccessMember,
	}, nil
}

// Requests for pages have a request id, count on the address, and are logged without the secrets in
// their paths.
func TestPortal(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) {
		c.Portal, c.Rate, c.Burst = portal.New(portal.Config{Invitations: welcoming{}}), 0.001, 9
	})
	const path = "/portal/invitations/the-secret-of-the-link"
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", path, 200}, {"HEAD", path, 200}, {"GET", "/portal/invitations/none", 404},
		{"PUT", path, 405}, {"GET", path + "/", 404}, {"GET", "/portal/sign-in", 200},
		{"GET", "/portal/assets/none.css", 404}, {"GET", path + "%2Fx", 200}, {"GET", path, 200},
	} {
		a := s.do(c.method, c.path, "", "Authorization", "")
		if a.StatusCode != c.status || a.Header.Get("X-Request-Id") == "" {
			t.Errorf(
				"%s %s: got %d %v, want %d with a request id", c.method, c.path, a.StatusCode,
				a.Header, c.status,
			)
		}
	}
	limited := s.do("GET", path, "", "Authorization", "")
	if limited.StatusCode != http.StatusTooManyRequests || limited.Header.Get("Retry-After") == "" {
		t.Errorf(
			"past the limit: got %d %v, want 429 with Retry-After", limited.StatusCode,
			limited.Header,
		)
	}
	streamstest.Eventually(
		t, "all requests are logged",
		func() bool { return strings.Count(s.logged.String(), "\n") == 10 },
	)
	if log := s.logged.String(); strings.Contains(log, "the-secret") ||
		!strings.Contains(log, `"route":"/portal/invitations/{token}"`) {
		t.Errorf("got log %s, want the route without the secret", log)
	}
}

// Errors of the router under /portal are pages, since JSON means nothing to people. Scripts get
// JSON, with a message that their page can show, and API clients get the contract's error body.
func TestPortalErrorsArePages(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) {
		c.Portal, c.Rate, c.Burst = portal.New(portal.Config{Invitations: welcoming{}}), 0.001, 8
	})
	const html, script = "text/html,application/xhtml+xml,*/*;q=0.8", "application/json"
	for _, c := range []struct {
		method, path, accept string
		status               int
		says                 string
	}{
		{"POST", "/portal/none", html, 405, "Go back, reload it"},
		{"DELETE", "/portal/sign-in", html, 405, "Go back, reload it"},
		{"GET", "/portal//x", html, 404, "Page not found"},
		{"GET", "/portal/none/of/this", html, 404, "Page not found"},
		{"POST", "/portal/none", script, 405, `"message":"The page that led here`},
		{
			"GET", "/portal/organizations", script, 401,
			`"message":"Sign in again."`,
		},
		{"GET", "/portalx", html, 404, `"type":"not_found"`},
		{"GET", "/elsewhere", html, 404, `"type":"not_found"`},
		{"GET", "/portal/sign-in", html, 429, "Wait "},
		{"GET", "/portal/sign-in", script, 429, `"message":"Your network`},
	} {
		a := s.do(c.method, c.path, "", "Authorization", "", "Accept", c.accept)
		if a.StatusCode != c.status || !strings.Contains(a.body, c.says) ||
			a.Header.Get("X-Request-Id") == "" {
			t.Errorf(
				"%s %s: got %d %s, want %d with %q and a request id", c.method, c.path,
				a.StatusCode, a.body, c.status, c.says,
			)
		}
		page := strings.HasPrefix(a.Header.Get("Content-Type"), "text/html") &&
			strings.Contains(a.body, "<!doctype html>") &&
			strings.HasPrefix(a.Header.Get("Content-Security-Policy"), "default-src 'none'") &&
			a.Header.Get("Cache-Control") == "no-store"
		if wanted := c.accept == html && strings.HasPrefix(c.path, "/portal/"); page != wanted {
			t.Errorf(
				"%s %s: got a page: %t, header %v, want %t", c.method, c.path, page, a.Header,
				wanted,
			)
		}
		if c.status == http.StatusMethodNotAllowed && a.Header.Get("Allow") == "" ||
			c.status == http.StatusTooManyRequests && a.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: got header %v, want Allow or Retry-After", c.method, c.path, a.Header)
		}
	}
}

// A browser that opens the bare address is redirected to the portal; programs get 404.
func TestBareAddress(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Portal = portal.New(portal.Config{}) })
	const html = "text/html,*/*;q=0.8"
	a := s.do("GET", "/", "", "Authorization", "", "Accept", html)
	if a.StatusCode != http.StatusOK || a.Request.URL.Path != "/portal/sign-in" {
		t.Errorf("browser: got %d at %s, want 200 at /portal/sign-in", a.StatusCode, a.Request.URL)
	}
	wantError(
		t, s.do("GET", "/", "", "Authorization", "", "Accept", "*/*"), http.StatusNotFound,
		domain.CodeNotFound,
	)
	wantError(
		t, s.do("POST", "/", "", "Authorization", "", "Accept", html), http.StatusNotFound,
		domain.CodeNotFound,
	)
	without := start(t, nil)
	wantError(
		t, without.do("GET", "/", "", "Authorization", "", "Accept", html), http.StatusNotFound,
		domain.CodeNotFound,
	)
}
