package harness

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
)

// The environment variables that name a service which stands somewhere already. Without the first,
// a suite starts one of its own.
const (
	// EnvURL is the contract's base URL, with /v1.
	EnvURL = "HUBCLOUD_TEST_URL"
	// EnvKey is an API key of every scope.
	EnvKey = "HUBCLOUD_TEST_KEY"
	// EnvOtherKey is one of another organization. Without it, what needs a second organization is
	// skipped.
	EnvOtherKey = "HUBCLOUD_TEST_OTHER_KEY"
	// EnvHubs is a file of hubs that nobody has used yet, as `hubcloud inventory generate --json`
	// prints them; each is used once. Without it, what needs hubs is skipped.
	EnvHubs = "HUBCLOUD_TEST_HUBS"
)

// Target is the service that a suite tries: one that the suite starts and may kill, or one that is
// known by its address and keys alone.
type Target struct {
	t testing.TB
	// Base is the address of the API, with /v1; Public the same without.
	Base, Public string

	service *Service // nil: not ours
	hubs    *shelf
}

// Made is a hub as it leaves the factory.
type Made struct {
	Serial string `json:"serial"`
	HubID  string `json:"hub_id"`
	Secret string `json:"secret"`
}

// shelf holds hubs that nobody has used yet.
type shelf struct {
	mu   sync.Mutex
	hubs []Made
}

// NewTarget gives the service of the environment, or starts one with the given arguments.
func NewTarget(t testing.TB, args ...string) *Target {
	t.Helper()
	base := strings.TrimRight(os.Getenv(EnvURL), "/")
	if base == "" {
		s := Start(t, args...)
		return &Target{t: t, Base: s.Base(), Public: s.Public(), service: s, hubs: &shelf{}}
	}
	if !strings.HasSuffix(base, "/v1") || os.Getenv(EnvKey) == "" {
		t.Fatalf("%s must end in /v1, and goes with %s", EnvURL, EnvKey)
	}
	c := &Target{t: t, Base: base, Public: strings.TrimSuffix(base, "/v1"), hubs: &shelf{}}
	if path := os.Getenv(EnvHubs); path != "" {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		c.hubs.hubs = readMade(t, bufio.NewScanner(file))
	}
	return c
}

func readMade(t testing.TB, lines *bufio.Scanner) []Made {
	t.Helper()
	var all []Made
	for lines.Scan() {
		var made Made
		if err := json.Unmarshal(lines.Bytes(), &made); err != nil {
			t.Fatalf("%q is no hub: %v", lines.Text(), err)
		}
		all = append(all, made)
	}
	return all
}

// For is the target in the hands of a subtest: what fails or is skipped, fails or is skipped there.
func (c *Target) For(t testing.TB) *Target {
	other := *c
	other.t = t
	return &other
}

// Own gives the service that the suite has started. Where it has started none the test is skipped,
// and says so.
func (c *Target) Own() *Service {
	c.t.Helper()
	if c.service == nil {
		c.t.Skipf(
			"NOT TRIED: this needs a service that the suite may configure and kill, and %s names another",
			EnvURL,
		)
	}
	return c.service.For(c.t)
}

// Tenant gives an organization with one site: a new one, or that of the given key with a site of
// its own.
func (c *Target) Tenant(name string) *Tenant {
	c.t.Helper()
	if c.service != nil {
		return NewTenant(c.t, c.service, name)
	}
	return c.given(EnvKey, name)
}

// Stranger gives another organization than Tenant does.
func (c *Target) Stranger(name string) *Tenant {
	c.t.Helper()
	if c.service != nil {
		return NewTenant(c.t, c.service, name)
	}
	if os.Getenv(EnvOtherKey) == "" {
		c.t.Skipf("NOT TRIED: this needs a second organization, and %s is not set", EnvOtherKey)
	}
	return c.given(EnvOtherKey, name)
}

func (c *Target) given(variable, name string) *Tenant {
	c.t.Helper()
	tenant := &Tenant{Client: NewClient(c.t, c.Base, os.Getenv(variable))}
	tenant.Site = tenant.NewSite(name + " site")
	return tenant
}

// Inventory gives hubs that nobody has used yet.
func (c *Target) Inventory(count int) []Made {
	c.t.Helper()
	if c.service != nil {
		return c.service.For(c.t).Inventory(count)
	}
	c.hubs.mu.Lock()
	defer c.hubs.mu.Unlock()
	if len(c.hubs.hubs) < count {
		c.t.Skipf(
			"NOT TRIED: this needs %d hubs that nobody has used, and the file of %s has no more",
			count, EnvHubs,
		)
	}
	taken := c.hubs.hubs[:count]
	c.hubs.hubs = c.hubs.hubs[count:]
	return taken
}

// RawHub gives a hub that has not enrolled yet.
func (c *Target) RawHub() *RawHub {
	c.t.Helper()
	return c.Inventory(1)[0].Raw(c.t, c.Public)
}

// Online gives a connected hub without events that belongs to the tenant.
func (c *Target) Online(tenant *Tenant) *RawHub {
	c.t.Helper()
	hub := c.RawHub()
	hub.Enroll()
	hub.Come()
	tenant.For(c.t).Add(hub.Serial)
	return hub
}

// Ours says whether the suite has started the service.
func (c *Target) Ours() bool { return c.service != nil }
