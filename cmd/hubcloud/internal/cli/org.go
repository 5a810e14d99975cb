package cli

import (
	"context"

	"hubcloud/cmd/hubcloud/internal/operator"
)

// orgCommand groups the commands on organizations.
type orgCommand struct {
	Create orgCreateCommand `cmd:"" help:"Create an organization with its first owner."`
}

type orgCreateCommand struct {
	operatorFlags
	outputFlags
	Name       string `help:"Name of the organization, 1 to 200 characters." required:"" placeholder:"NAME"`
	OwnerEmail string `help:"E-mail address of the first owner." required:"" placeholder:"ADDRESS"`
}

// Run creates the organization.
func (c *orgCreateCommand) Run(ctx context.Context, out Output) error {
	return c.withSession(ctx, func(ctx context.Context, s *operator.Session) error {
		org, owner, err := s.Directory.CreateOrg(ctx, operator.Origin(), c.Name, c.OwnerEmail)
		if err != nil {
			return err
		}
		return c.print(out.Out, field{"org_id", org}, field{"owner_id", owner})
	})
}
