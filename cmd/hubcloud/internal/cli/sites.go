package cli

import (
	"context"
	"strconv"

	"hubcloud/httpapi/client"
)

// sitesCommand lists the organization's sites.
type sitesCommand struct {
	apiFlags
}

// Run lists the sites.
func (c *sitesCommand) Run(ctx context.Context, out Output) error {
	header := []string{"SITE", "NAME", "HUBS", "CREATED"}
	return listAll(ctx, out, &c.apiFlags, (*client.Client).Sites, header, func(s client.Site) []string {
		return []string{s.ID, s.Name, strconv.Itoa(s.HubCount), shortTime(s.CreatedAt)}
	})
}

// membersCommand lists the organization's members.
type membersCommand struct {
	apiFlags
}

// Run lists the members.
func (c *membersCommand) Run(ctx context.Context, out Output) error {
	header := []string{"MEMBER", "EMAIL", "ACCESS", "JOINED"}
	return listAll(ctx, out, &c.apiFlags, (*client.Client).Members, header, func(m client.Member) []string {
		return []string{m.ID, m.Email, m.Access, shortTime(m.JoinedAt)}
	})
}
