package cli

import (
	"context"
	"fmt"

	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/domain"
)

// keyCommand groups the commands on API keys.
type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Create an API key and print it. It cannot be shown again."`
	Revoke keyRevokeCommand `cmd:"" help:"Revoke an API key permanently."`
}

type keyCreateCommand struct {
	operatorFlags
	outputFlags
	Org       string   `help:"Id of the organization." required:"" placeholder:"ORG_ID"`
	Scope     []string `help:"Scope of the key; may be repeated or have several scopes, separated by commas." sep:"," placeholder:"SCOPE"`
	AllScopes bool     `help:"Give the key every scope."`
	Label     string   `help:"Description of the key." placeholder:"TEXT"`
}

// Run creates the key.
func (c *keyCreateCommand) Run(ctx context.Context, out Output) error {
	scopes, err := c.scopes()
	if err != nil {
		return err
	}
	return c.withSession(ctx, func(ctx context.Context, s *operator.Session) error {
		id, key, err := s.Directory.CreateKey(ctx, operator.Origin(), c.Org, c.Label, scopes)
		if err != nil {
			return err
		}
		if !c.JSON {
			fmt.Fprintln(out.Err, "The key is shown only once; the cloud keeps a hash of it.")
		}
		return c.print(out.Out, field{"key_id", id}, field{"key", key})
	})
}

func (c *keyCreateCommand) scopes() ([]domain.Scope, error) {
	switch {
	case c.AllScopes && len(c.Scope) > 0:
		return nil, usage.Errorf("give --scope or --all-scopes, not both")
	case c.AllScopes:
		return domain.AllScopes(), nil
	case len(c.Scope) == 0:
		return nil, usage.Errorf("a key needs a scope: give --scope, or --all-scopes")
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

type keyRevokeCommand struct {
	operatorFlags
	outputFlags
	KeyID string `arg:"" name:"key-id" help:"Id of the key: the twelve characters that the portal and the logs show."`
}

// Run revokes the key. When it returns, every replica rejects the key.
func (c *keyRevokeCommand) Run(ctx context.Context, out Output) error {
	return c.withSession(ctx, func(ctx context.Context, s *operator.Session) error {
		if err := s.Directory.RevokeKey(ctx, operator.Origin(), c.KeyID, ""); err != nil {
			return err
		}
		return c.print(out.Out, field{"key_id", c.KeyID})
	})
}
