package httpapi

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
)

// welcoming accepts every invitation but "none".
type welcoming struct{}

func (welcoming) AcceptInvitation(_ context.Context, o domain.Origin, token string) (domain.Acceptance, error) {
	if token == "none" || o.RequestID == "" {
		return domain.Acceptance{}, domain.ErrInvitationNotFound()
	}
	return domain.Acceptance{OrgName: "Acme", Email: "ann@example.org", Role: domain.RoleMember}, nil
}

// TestPortal: pages are answered within the API's order: with a request id, counted on the address, and logged without what is secret in
// their addresses.
func TestPortal(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) {
		c.Portal, c.Rate, c.Burst = portal.New(portal.Config{Invitations: welcoming{}}).Routes(), 0.001, 9
	})
	const path = "/portal/invitations/the-secret-of-the-link"
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", path, 200}, {"HEAD", path, 200}, {"GET", "/portal/invitations/none", 404}, {"POST", path, 405}, {"GET", path + "/", 404}, {"GET", "/portal/sign-in", 200},
		{"GET", "/portal/assets/none.css", 404}, {"GET", path + "%2Fx", 200}, {"GET", path, 200},
	} {
		a := s.do(c.method, c.path, "", "Authorization", "")
		if a.StatusCode != c.status || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %d %v", c.method, c.path, a.StatusCode, a.Header)
		}
	}
	refused(t, s.do("GET", path, "", "Authorization", ""), http.StatusTooManyRequests, domain.CodeRateLimited)
	eventually(t, func() bool { return strings.Count(s.logged.String(), "\n") == 10 })
	if log := s.logged.String(); strings.Contains(log, "the-secret") || !strings.Contains(log, `"route":"/portal/invitations/{token}"`) {
		t.Error(log)
	}
}
