package main

import "context"

// orgCommand holds the commands about organizations.
type orgCommand struct {
	Create orgCreateCommand `cmd:"" help:"Create an organization with its first owner."`
}

type orgCreateCommand struct {
	operator
	printed
	Name       string `help:"Name of the organization, 1 to 200 characters." required:"" placeholder:"NAME"`
	OwnerEmail string `help:"E-mail address of its first owner." required:"" placeholder:"ADDRESS"`
}

// Run creates the organization.
func (c *orgCreateCommand) Run(ctx context.Context, out Streams) error {
	return c.do(ctx, func(ctx context.Context, s *session) error {
		org, owner, err := s.service.CreateOrg(ctx, byOperator(), c.Name, c.OwnerEmail)
		if err != nil {
			return err
		}
		return c.print(out.Out, field{"org_id", org}, field{"owner_id", owner})
	})
}
