package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
)

// keyCommand groups the commands on API keys.
type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Create an API key and print it. It cannot be shown again."`
	List   keyListCommand   `cmd:"" help:"List the API keys, without their secrets."`
	Rotate keyRotateCommand `cmd:"" help:"Replace the secret of an API key, and print the key with the new one."`
	Revoke keyRevokeCommand `cmd:"" help:"Revoke an API key permanently."`
}

type keyCreateCommand struct {
	operatorCommand
	Org       string   `help:"Id of the organization." required:"" placeholder:"ORG_ID"`
	Scope     []string `help:"Scope of the key; may be repeated or have several scopes, separated by commas." sep:"," placeholder:"SCOPE"`
	AllScopes bool     `help:"Give the key every scope."`
	Label     string   `help:"Description of the key." placeholder:"TEXT"`
	Site      []string `help:"Id of a site that the key is limited to; may be repeated. By default the key reaches all sites." sep:"," placeholder:"SITE_ID"`

	Expires time.Time `help:"When the key expires, such as 2027-01-02T03:04:05Z. By default it never does." placeholder:"TIME" format:"2006-01-02T15:04:05Z07:00"`
}

// Run creates the key.
func (c *keyCreateCommand) Run(ctx context.Context, out Output) error {
	scopes, err := c.scopes()
	if err != nil {
		return err
	}
	return c.withSession(ctx, func(ctx context.Context, s *installation.Session) error {
		id, key, err := s.Directory.CreateKey(
			ctx, installation.OperatorOrigin(), c.Org, c.Label, scopes,
			domain.KeyLimits{Sites: c.Site, ExpiresAt: c.Expires},
		)
		if err != nil {
			return err
		}
		return c.printKey(out, id, key)
	})
}

// printKey prints a key that was made.
func (f outputFlags) printKey(out Output, id, key string) error {
	if !f.JSON {
		fmt.Fprintln(out.Err, "The key is shown only once; the cloud keeps a hash of it.")
	}
	return f.print(out.Out, field{"key_id", id}, field{"key", key})
}

// Help returns the long help text.
func (*keyCreateCommand) Help() string {
	names := scopeNames(domain.AllScopes())
	return strings.Replace(helpText("key-create"), "SCOPES", strings.Join(names, ", "), 1)
}

func (c *keyCreateCommand) scopes() ([]domain.Scope, error) {
	switch {
	case c.AllScopes && len(c.Scope) > 0:
		return nil, installation.Usagef("give --scope or --all-scopes, not both")
	case c.AllScopes:
		return domain.AllScopes(), nil
	case len(c.Scope) == 0:
		return nil, installation.Usagef("a key needs a scope: give --scope, or --all-scopes")
	}
	scopes := make([]domain.Scope, 0, len(c.Scope))
	for _, name := range c.Scope {
		scope, err := domain.ParseScope(name)
		if err != nil {
			return nil, err
		}
		scopes = append(scopes, scope)
	}
	return scopes, nil
}

// chosenKey is the key that a command changes.
type chosenKey struct {
	operatorCommand
	KeyID string `arg:"" name:"key-id" help:"Id of the key: the twelve characters that the portal and the logs show."`
}

type keyRotateCommand struct {
	chosenKey
	Overlap time.Duration `help:"How long the former secret works, such as 24h; 0 ends it at once." default:"24h"`
}

// Run rotates the key.
func (c *keyRotateCommand) Run(ctx context.Context, out Output) error {
	return c.withSession(ctx, func(ctx context.Context, s *installation.Session) error {
		key, err := s.Directory.RotateKey(ctx, installation.OperatorOrigin(), c.KeyID, "", c.Overlap)
		if err != nil {
			return err
		}
		return c.printKey(out, c.KeyID, key)
	})
}

type keyRevokeCommand struct{ chosenKey }

// Run revokes the key. When it returns, every replica rejects the key.
func (c *keyRevokeCommand) Run(ctx context.Context, out Output) error {
	return c.withSession(ctx, func(ctx context.Context, s *installation.Session) error {
		if err := s.Directory.RevokeKey(ctx, installation.OperatorOrigin(), c.KeyID, ""); err != nil {
			return err
		}
		return c.print(out.Out, field{"key_id", c.KeyID})
	})
}

type keyListCommand struct {
	operatorCommand
	Org     string `help:"Only the keys of this organization." placeholder:"ORG_ID"`
	Revoked bool   `help:"Also the revoked keys."`
}

// keyJSON is an API key with --json.
type keyJSON struct {
	KeyID     string         `json:"key_id"`
	OrgID     string         `json:"org_id"`
	Label     string         `json:"label"`
	Scopes    []domain.Scope `json:"scopes"`
	CreatedAt string         `json:"created_at"`
	// Sites are those that the key is limited to; empty for none.
	Sites []string `json:"site_ids"`
	// ExpiresAt is null for a key that does not expire.
	ExpiresAt *string `json:"expires_at"`
	// RevokedAt is null for a valid key.
	RevokedAt *string `json:"revoked_at"`
}

// Run prints the keys in the order of their creation.
func (c *keyListCommand) Run(ctx context.Context, out Output) error {
	s, err := installation.Connect(ctx, c.service())
	if err != nil {
		return err
	}
	defer s.Close()
	if err := c.checkOrg(ctx, s); err != nil {
		return err
	}
	keys, err := s.Log.Keys(ctx)
	if err != nil {
		return err
	}
	lines := make([]keyJSON, 0, len(keys))
	for _, key := range keys {
		if c.Org != "" && key.OrgID != c.Org || key.Revoked() && !c.Revoked {
			continue
		}
		lines = append(lines, keyJSON{
			KeyID: key.ID, OrgID: key.OrgID, Label: key.Label, Scopes: key.Scopes,
			CreatedAt: domain.FormatTime(key.CreatedAt), RevokedAt: optionalTime(key.RevokedAt),
			Sites: append([]string{}, key.Sites...), ExpiresAt: optionalTime(key.ExpiresAt),
		})
	}
	header := []string{"KEY", "ORGANIZATION", "LABEL", "SCOPES", "SITES", "CREATED", "EXPIRES", "REVOKED"}
	return list(out.Out, c.outputFlags, each(lines), header, func(k keyJSON) []string {
		return []string{
			k.KeyID, k.OrgID, k.Label, scopesText(k.Scopes), strings.Join(k.Sites, ","), k.CreatedAt,
			orEmpty(k.ExpiresAt), orEmpty(k.RevokedAt),
		}
	})
}

// checkOrg returns a usage error for an organization that does not exist.
func (c *keyListCommand) checkOrg(ctx context.Context, s *installation.Session) error {
	if c.Org == "" {
		return nil
	}
	orgs, err := s.Log.Orgs(ctx)
	if err != nil {
		return err
	}
	for _, org := range orgs {
		if org.ID == c.Org {
			return nil
		}
	}
	return installation.Usagef(
		"--org %q: no such organization; `hubcloud org list` lists them", c.Org,
	)
}

// scopesText returns the scopes as text, "all" for every scope.
func scopesText(scopes []domain.Scope) string {
	if len(scopes) == len(domain.AllScopes()) {
		return "all"
	}
	return strings.Join(scopeNames(scopes), ",")
}

func scopeNames(scopes []domain.Scope) []string {
	names := make([]string, 0, len(scopes))
	for _, scope := range scopes {
		names = append(names, string(scope))
	}
	return names
}
