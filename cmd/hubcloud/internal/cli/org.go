package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
)

// orgCommand groups the commands on organizations.
type orgCommand struct {
	Create orgCreateCommand `cmd:"" help:"Create an organization with its first owner, who is mailed a link that signs in."`
	List   orgListCommand   `cmd:"" help:"List the organizations."`
}

type orgCreateCommand struct {
	operatorCommand
	Name       string `help:"Name of the organization, 1 to 200 characters." required:"" placeholder:"NAME"`
	OwnerEmail string `help:"E-mail address of the first owner." required:"" placeholder:"ADDRESS"`
}

// Run creates the organization.
func (c *orgCreateCommand) Run(ctx context.Context, out Output) error {
	return c.withSession(ctx, func(ctx context.Context, s *installation.Session) error {
		org, owner, err := s.Directory.CreateOrg(ctx, installation.OperatorOrigin(), c.Name, c.OwnerEmail)
		if err != nil {
			return err
		}
		if err := s.MailOwner(ctx, c.service(), org, c.Name, c.OwnerEmail); err != nil {
			fmt.Fprintf(out.Err, "The owner was not mailed, and can sign in at the portal: %v\n", err)
		}
		return c.print(out.Out, field{"org_id", org}, field{"owner_id", owner})
	})
}

type orgListCommand struct {
	operatorCommand
}

// orgJSON is an organization with --json.
type orgJSON struct {
	OrgID     string   `json:"org_id"`
	Name      string   `json:"name"`
	Owners    []string `json:"owners"`
	Members   int      `json:"members"`
	CreatedAt string   `json:"created_at"`
}

// Run prints the organizations in the order of their creation.
func (c *orgListCommand) Run(ctx context.Context, out Output) error {
	s, err := installation.Connect(ctx, c.service())
	if err != nil {
		return err
	}
	defer s.Close()
	orgs, err := s.Log.Orgs(ctx)
	if err != nil {
		return err
	}
	lines := make([]orgJSON, 0, len(orgs))
	for _, org := range orgs {
		line := orgJSON{
			OrgID: org.ID, Name: org.Name, Owners: []string{}, Members: len(org.Members),
			CreatedAt: domain.FormatTime(org.CreatedAt),
		}
		for _, member := range org.Members {
			if member.Role == domain.RoleOwner {
				line.Owners = append(line.Owners, member.Email)
			}
		}
		lines = append(lines, line)
	}
	header := []string{"ORGANIZATION", "NAME", "OWNERS", "MEMBERS", "CREATED"}
	return list(out.Out, c.outputFlags, each(lines), header, func(o orgJSON) []string {
		return []string{
			o.OrgID, o.Name, strings.Join(o.Owners, " "), strconv.Itoa(o.Members), o.CreatedAt,
		}
	})
}
