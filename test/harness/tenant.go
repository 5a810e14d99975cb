package harness

import (
	"net/http"
	"testing"
	"time"
)

// Tenant is an organization with a key of every scope and one site.
type Tenant struct {
	*Client
	Org, Site, KeyID string
}

// NewTenant makes an organization on the service.
func NewTenant(t testing.TB, s *Service, name string) *Tenant {
	t.Helper()
	org := s.CLI("org", "create", "--name", name, "--owner-email", "owner@example.com")[0]["org_id"].(string)
	key := s.CLI("key", "create", "--org", org, "--all-scopes")[0]
	tenant := &Tenant{Client: NewClient(t, s.Base(), key["key"].(string)), Org: org, KeyID: key["key_id"].(string)}
	var site struct{ ID string }
	tenant.Must(http.MethodPost, "/sites", map[string]string{"name": name + " site"}, http.StatusCreated).JSON(t, &site)
	tenant.Site = site.ID
	return tenant
}

// Add adds a hub to the tenant's site.
func (c *Tenant) Add(serial string) {
	c.T.Helper()
	c.Must(http.MethodPost, "/hubs", map[string]string{"serial": serial, "site_id": c.Site}, http.StatusOK)
}

// Eventually polls until the condition holds, and fails the test when it does not in time.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
