package harness

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// Tenant is an organization with one site and a client whose key has all scopes.
type Tenant struct {
	*Client
	Org, Site, KeyID string
	// Owner is the email address of the organization's first owner.
	Owner string
}

// readModelsPatience is how long NewTenant waits for read models. Some tests have stopped them.
const readModelsPatience = 15 * time.Second

// NewTenant creates an organization on the service. It waits for a moment until the read models of
// a new installation are built: lists are answered 503 until then.
func NewTenant(t testing.TB, s *Service, name string) *Tenant {
	t.Helper()
	owner := fmt.Sprintf( // of this organization only, also when a test runs again
		"owner@%s-%s.example.com", strings.ReplaceAll(strings.ToLower(name), " ", "-"),
		strings.ToLower(rand.Text()[:8]),
	)
	org := s.For(t).CLI(
		"org", "create", "--name", name, "--owner-email", owner,
	)[0]["org_id"].(string)
	key := s.For(t).CLI("key", "create", "--org", org, "--all-scopes")[0]
	tenant := &Tenant{
		Client: NewClient(t, s.Base(), key["key"].(string)),
		Org:    org,
		KeyID:  key["key_id"].(string),
		Owner:  owner,
	}
	tenant.Site = tenant.NewSite(name + " site")
	streamstest.Poll(readModelsPatience, func() bool {
		answer, err := tenant.Do(http.MethodGet, "/state?limit=1", nil)
		return err == nil && answer.Status != http.StatusServiceUnavailable
	})
	return tenant
}

// For returns a copy of the tenant that reports failures to t.
func (c *Tenant) For(t testing.TB) *Tenant {
	other := *c
	other.Client = c.Client.For(t)
	return &other
}

// NewSite creates a site and returns its id.
func (c *Tenant) NewSite(name string) string {
	c.T.Helper()
	var site struct{ ID string }
	c.Must(http.MethodPost, "/sites", map[string]string{"name": name}, http.StatusCreated).
		JSON(c.T, &site)
	return site.ID
}

// Add adds a hub to the tenant's site.
func (c *Tenant) Add(serial string) {
	c.T.Helper()
	c.Must(
		http.MethodPost, "/hubs", map[string]string{"serial": serial, "site_id": c.Site},
		http.StatusOK,
	)
}
