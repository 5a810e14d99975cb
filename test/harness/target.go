package harness

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
)

// Environment variables that name a running service to test. Without EnvURL, a suite starts its
// own.
const (
	// EnvURL is the base URL of the API, with /v1.
	EnvURL = "HUBCLOUD_TEST_URL"
	// EnvKey is an API key with all scopes.
	EnvKey = "HUBCLOUD_TEST_KEY"
	// EnvOtherKey is an API key of another organization. Without it, tests that need a second
	// organization are skipped.
	EnvOtherKey = "HUBCLOUD_TEST_OTHER_KEY"
	// EnvHubs is a file with unused hubs, in the format of `hubcloud inventory generate --json`.
	// Each is used once. Without it, tests that need hubs are skipped.
	EnvHubs = "HUBCLOUD_TEST_HUBS"
)

// Target is the service under test: one that the suite started and may kill, or one that it knows
// only by address and keys.
type Target struct {
	t testing.TB
	// Base is the base URL of the API, with /v1. Public is the same without /v1.
	Base, Public string

	service *Service // nil if the environment names the service
	hubs    *unusedHubs
}

// unusedHubs are the hubs of the file that EnvHubs names which no test has used yet.
type unusedHubs struct {
	mu   sync.Mutex
	hubs []FactoryHub
}

// NewTarget returns the service that the environment names, or starts one with the given arguments.
func NewTarget(t testing.TB, args ...string) *Target {
	t.Helper()
	base := strings.TrimRight(os.Getenv(EnvURL), "/")
	if base == "" {
		return TargetOf(t, Start(t, args...))
	}
	if !strings.HasSuffix(base, "/v1") || os.Getenv(EnvKey) == "" {
		t.Fatalf("%s must end in /v1, and %s must be set", EnvURL, EnvKey)
	}
	c := &Target{t: t, Base: base, Public: strings.TrimSuffix(base, "/v1"), hubs: &unusedHubs{}}
	if path := os.Getenv(EnvHubs); path != "" {
		file, err := os.Open(path)
		Must(t, err)
		defer file.Close()
		c.hubs.hubs = readHubs(t, bufio.NewScanner(file))
	}
	return c
}

// TargetOf returns a service that runs.
func TargetOf(t testing.TB, s *Service) *Target {
	return &Target{t: t, Base: s.Base(), Public: s.Public(), service: s, hubs: &unusedHubs{}}
}

func readHubs(t testing.TB, lines *bufio.Scanner) []FactoryHub {
	t.Helper()
	var hubs []FactoryHub
	for lines.Scan() {
		var hub FactoryHub
		if err := json.Unmarshal(lines.Bytes(), &hub); err != nil {
			t.Fatalf("parse hub %q: %v", lines.Text(), err)
		}
		hubs = append(hubs, hub)
	}
	return hubs
}

// For returns a copy of the target that reports failures and skips to t.
func (c *Target) For(t testing.TB) *Target {
	other := *c
	other.t = t
	return &other
}

// OwnService returns the service that the suite started. It skips the test if the environment names
// the service.
func (c *Target) OwnService() *Service {
	c.t.Helper()
	if c.service == nil {
		c.t.Skipf(
			"NOT TRIED: needs a service that the suite may configure and kill; %s is set", EnvURL,
		)
	}
	return c.service.For(c.t)
}

// Tenant returns an organization with one site: a new organization, or EnvKey's with a new
// site.
func (c *Target) Tenant(name string) *Tenant {
	c.t.Helper()
	if c.service != nil {
		return NewTenant(c.t, c.service, name)
	}
	return c.given(EnvKey, name)
}

// OtherTenant returns another organization than Tenant.
func (c *Target) OtherTenant(name string) *Tenant {
	c.t.Helper()
	if c.service != nil {
		return NewTenant(c.t, c.service, name)
	}
	if os.Getenv(EnvOtherKey) == "" {
		c.t.Skipf("NOT TRIED: needs a second organization; %s is not set", EnvOtherKey)
	}
	return c.given(EnvOtherKey, name)
}

// given returns the organization of the key in an environment variable, with a new site.
func (c *Target) given(variable, name string) *Tenant {
	c.t.Helper()
	tenant := &Tenant{Client: NewClient(c.t, c.Base, os.Getenv(variable))}
	tenant.Site = tenant.NewSite(name + " site")
	return tenant
}

// Inventory returns unused hubs.
func (c *Target) Inventory(count int) []FactoryHub {
	c.t.Helper()
	if c.service != nil {
		return c.service.For(c.t).Inventory(count)
	}
	c.hubs.mu.Lock()
	defer c.hubs.mu.Unlock()
	if len(c.hubs.hubs) < count {
		c.t.Skipf(
			"NOT TRIED: needs %d unused hubs; the file that %s names has fewer left",
			count, EnvHubs,
		)
	}
	taken := c.hubs.hubs[:count]
	c.hubs.hubs = c.hubs.hubs[count:]
	return taken
}

// Hub returns an unused hub.
func (c *Target) Hub() FactoryHub {
	c.t.Helper()
	if c.service != nil {
		return c.service.For(c.t).Hub()
	}
	return c.Inventory(1)[0]
}

// RawHub returns a hub that has not enrolled yet.
func (c *Target) RawHub() *RawHub {
	c.t.Helper()
	return c.Hub().Raw(c.t, c.Public)
}

// Online returns a connected hub without events that belongs to the tenant.
func (c *Target) Online(tenant *Tenant) *RawHub {
	c.t.Helper()
	hub := c.RawHub()
	hub.Enroll()
	hub.GoOnline()
	tenant.For(c.t).Add(hub.Serial)
	return hub
}

// Owned reports whether the suite started the service.
func (c *Target) Owned() bool { return c.service != nil }
