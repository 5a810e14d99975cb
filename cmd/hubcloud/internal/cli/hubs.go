package cli

import (
	"cmp"
	"context"

	"hubcloud/httpapi/client"
)

// hubsCommand lists the organization's hubs.
type hubsCommand struct {
	apiFlags
	Site string `help:"Only the hubs at this site." placeholder:"SITE" complete:"site"`
}

// Run lists the hubs.
func (c *hubsCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, func(api *client.Client) error {
		site, err := siteID(ctx, api, c.Site)
		if err != nil {
			return err
		}
		sites, err := namesByID(c.outputFlags, api.Sites(ctx), siteName)
		if err != nil {
			return err
		}
		header := []string{"HUB", "NAME", "STATUS", "SINCE", "SITE"}
		return list(out.Out, c.outputFlags, api.Hubs(ctx, site), header, func(hub client.ListedHub) []string {
			return []string{
				hub.ID, orEmpty(hub.Name), string(hub.Connection.Status),
				shortTime(hub.Connection.Since), cmp.Or(sites[hub.SiteID], hub.SiteID),
			}
		})
	})
}
