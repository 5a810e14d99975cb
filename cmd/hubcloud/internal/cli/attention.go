package cli

import (
	"context"
	"fmt"

	"hubcloud/httpapi/client"
)

// attentionCommand lists what needs attention.
type attentionCommand struct {
	apiFlags
	Site  string `help:"Only at this site." placeholder:"SITE" complete:"site"`
	Hub   string `help:"Only of this hub." placeholder:"HUB" complete:"hub"`
	Limit int    `help:"The most conditions, up to 1000." default:"100"`
}

// Run lists the conditions.
func (c *attentionCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, func(api *client.Client) error {
		site, hub, err := placeIDs(ctx, api, c.Site, c.Hub)
		if err != nil {
			return err
		}
		page, err := api.Attention(ctx, client.AttentionFilter{SiteID: site, HubID: hub, Limit: c.Limit})
		if err != nil {
			return err
		}
		if page.HasMore {
			fmt.Fprintln(out.Err, "There is more: give --site or --hub, or a higher --limit.")
		}
		header := []string{"SEVERITY", "WHAT", "HUB", "DEVICE", "ROOM", "SINCE", "SEEN"}
		return list(out.Out, c.outputFlags, each(page.Data), header, func(c client.Condition) []string {
			return []string{
				c.Severity, c.Title, c.HubID, orEmpty(c.DeviceName), orEmpty(c.Room),
				timeOrEmpty(c.Since), timeOrEmpty(c.SeenAt),
			}
		})
	})
}
