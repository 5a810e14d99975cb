package cli

import (
	"context"
	"fmt"

	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/domain"
)

// keyCommand holds the commands about API keys.
type keyCommand struct {
	Create keyCreateCommand `cmd:"" help:"Create an API key. Its secret is shown once, here."`
	Revoke keyRevokeCommand `cmd:"" help:"Revoke an API key, at once and for good."`
}

type keyCreateCommand struct {
	operatorFlags
	outputFlags
	Org       string   `help:"Organization that the key is for." required:"" placeholder:"ORG_ID"`
	Scope     []string `help:"Scope of the key; repeat it, or separate scopes with commas." sep:"," placeholder:"SCOPE"`
	AllScopes bool     `help:"Give the key every scope."`
	Label     string   `help:"What the key is for, to tell it apart from others." placeholder:"TEXT"`
}

// Run creates the key.
func (c *keyCreateCommand) Run(ctx context.Context, out Streams) error {
	scopes, err := c.scopes()
	if err != nil {
		return err
	}
	return c.do(ctx, func(ctx context.Context, s *operator.Session) error {
		id, key, err := s.Directory.CreateKey(ctx, operator.Origin(), c.Org, c.Label, scopes)
		if err != nil {
			return err
		}
		if !c.JSON {
			fmt.Fprintln(out.Err, "The key is shown this once; only its hash is kept.")
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
	KeyID string `arg:"" name:"key-id" help:"Key to revoke: the twelve characters that the portal and the logs show."`
}

// Run revokes the key: when it returns, no replica lets it in any more.
func (c *keyRevokeCommand) Run(ctx context.Context, out Streams) error {
	return c.do(ctx, func(ctx context.Context, s *operator.Session) error {
		if err := s.Directory.RevokeKey(ctx, operator.Origin(), c.KeyID, ""); err != nil {
			return err
		}
		return c.print(out.Out, field{"key_id", c.KeyID})
	})
}
