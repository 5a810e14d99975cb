package oidc

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hubcloud/domain"
)

// Config is the file of --oidc, in JSON.
type Config struct {
	// Issuer is the provider's URL, exactly as its discovery document has it.
	Issuer string `json:"issuer"`
	// Name is how the sign-in page calls the provider. Defaults to the issuer's host.
	Name     string `json:"name"`
	ClientID string `json:"client_id"`
	// SecretFile is the path of a file with the client's secret, relative to this file. It is read at
	// each sign-in. A client without a secret has none.
	SecretFile string `json:"client_secret_file"`
	// CAFile is the path of certificates (PEM) that the provider's own is checked with, relative to
	// this file. Defaults to the system's.
	CAFile string `json:"ca_file"`
	// Scopes are what is asked for. Default to openid, email and profile.
	Scopes []string `json:"scopes"`
	// VerifiedClaim is the claim that must be true for the address to count. Defaults to
	// email_verified.
	VerifiedClaim string `json:"email_verified_claim"`
	// GroupsClaim is the claim with the person's groups. Defaults to groups.
	GroupsClaim string `json:"groups_claim"`
	// Domains are the domains of the addresses that the provider may vouch for. Default to all.
	Domains []string `json:"email_domains"`
	// ConfirmEvery is how often the provider must confirm a session. Defaults to 8 hours.
	ConfirmEvery duration `json:"confirm_every"`
	// Groups are the rules by which groups give access.
	Groups []GroupRule `json:"groups"`

	roots *x509.CertPool
}

// GroupRule is what the members of a group may do in an organization.
type GroupRule struct {
	Group string `json:"group"`
	// Org is the organization's id.
	Org  string        `json:"org"`
	Role domain.Access `json:"role"`
}

// minConfirm and maxConfirm bound ConfirmEvery. A session lasts no longer than maxConfirm.
const minConfirm, maxConfirm = 5 * time.Minute, 30 * 24 * time.Hour

// ReadConfig reads and checks the file. Errors name the file's member and what it allows.
func ReadConfig(path string) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var c Config
	if err := decoder.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	if decoder.More() {
		return Config{}, fmt.Errorf("%s: must be one JSON object", path)
	}
	if err := c.complete(filepath.Dir(path)); err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// complete checks the configuration, reads the files that it names, and sets the defaults.
func (c *Config) complete(dir string) error {
	issuer, err := url.Parse(c.Issuer)
	switch {
	case err != nil || issuer.Host == "" || issuer.RawQuery != "" || issuer.Fragment != "" ||
		issuer.User != nil || !secure(issuer):
		return fmt.Errorf("issuer: must be https://… without a query, not %q", c.Issuer)
	case c.ClientID == "":
		return errors.New("client_id: must not be empty")
	case c.Scopes != nil && !slices.Contains(c.Scopes, "openid"):
		return errors.New("scopes: must contain openid")
	}
	c.Name = cmp.Or(c.Name, issuer.Hostname())
	c.VerifiedClaim = cmp.Or(c.VerifiedClaim, "email_verified")
	c.GroupsClaim = cmp.Or(c.GroupsClaim, "groups")
	c.ConfirmEvery = cmp.Or(c.ConfirmEvery, duration(8*time.Hour))
	if c.Scopes == nil {
		c.Scopes = []string{"openid", "email", "profile"}
	}
	if every := time.Duration(c.ConfirmEvery); every < minConfirm || every > maxConfirm {
		return errors.New("confirm_every: must be 5m to 720h")
	}
	for i, name := range c.Domains {
		clean, err := domain.CleanEmail("email_domains", "x@"+name)
		if err != nil {
			return fmt.Errorf("email_domains: %q is no domain", name)
		}
		c.Domains[i] = domain.NormalizeEmail(clean)
	}
	for i, rule := range c.Groups {
		if rule.Group == "" || !domain.IsUUID(rule.Org) {
			return fmt.Errorf("groups: rule %d: must have group, and the id of an organization as org", i)
		}
		if _, err := domain.ParseAccess("role", string(rule.Role)); err != nil {
			return fmt.Errorf(
				"groups: rule %d: role: must be owner, admin, member or viewer, not %q", i, rule.Role,
			)
		}
	}
	return c.readFiles(dir)
}

// readFiles checks that the secret can be read, and reads the authorities.
func (c *Config) readFiles(dir string) error {
	for _, path := range []*string{&c.SecretFile, &c.CAFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	if _, err := c.secret(); err != nil {
		return err
	}
	if c.CAFile == "" {
		return nil
	}
	text, err := os.ReadFile(c.CAFile)
	if err != nil {
		return fmt.Errorf("ca_file: %w", err)
	}
	if c.roots = x509.NewCertPool(); !c.roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("ca_file: %s has no certificate (PEM)", c.CAFile)
	}
	return nil
}

// secret reads the client's secret; "" for a client without one.
func (c *Config) secret() (string, error) {
	if c.SecretFile == "" {
		return "", nil
	}
	text, err := os.ReadFile(c.SecretFile)
	if err != nil {
		return "", fmt.Errorf("client_secret_file: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("client_secret_file: %s is empty", c.SecretFile)
	}
	return secret, nil
}

// vouchesFor reports whether the provider may vouch for an address.
func (c *Config) vouchesFor(email string) bool {
	_, host, _ := strings.Cut(domain.NormalizeEmail(email), "@")
	return len(c.Domains) == 0 || slices.Contains(c.Domains, "x@"+host)
}

// access returns what groups allow, by organization: of several rules, what allows most.
func (c *Config) access(groups []string) map[string]domain.Access {
	all := map[string]domain.Access{}
	for _, rule := range c.Groups {
		if slices.Contains(groups, rule.Group) && rule.Role.Exceeds(all[rule.Org]) {
			all[rule.Org] = rule.Role
		}
	}
	return all
}

// secure reports whether requests to a URL are encrypted or stay on this machine.
func secure(u *url.URL) bool {
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || u.Scheme == "http" && loopback
}

// duration is a time.Duration that JSON has as text, such as "8h", for ConfirmEvery.
type duration time.Duration

// UnmarshalText parses the text.
func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("confirm_every: must be a duration such as 8h, not %q", text)
	}
	*d = duration(parsed)
	return nil
}
