package cli

import (
	"cmp"
	"context"

	"hubcloud/httpapi/client"
)

// stateCommand lists what channels last reported.
type stateCommand struct {
	apiFlags
	Channel channelName `arg:"" optional:"" name:"channel" help:"Only channels with this key, such as lock, or with this key and endpoint, such as switch#1."`

	Site   string `help:"Only at this site." placeholder:"SITE" complete:"site"`
	Hub    string `help:"Only of this hub." placeholder:"HUB" complete:"hub"`
	Value  string `help:"Only channels whose value is true, or false." placeholder:"true|false" enum:"true,false," default:""`
	Status string `help:"Only channels with this status: unknown, synchronized, pending, diverged or failed." placeholder:"STATUS"`
}

// Run lists the states.
func (c *stateCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, func(api *client.Client) error {
		site, hub, err := placeIDs(ctx, api, c.Site, c.Hub)
		if err != nil {
			return err
		}
		filter := client.StateFilter{
			SiteID: site, HubID: hub, Key: c.Channel.Key, Status: client.ChannelStatus(c.Status),
		}
		if c.Value != "" {
			filter.Value = new(c.Value == "true")
		}
		chosen := func(yield func(client.State, error) bool) {
			for s, err := range api.States(ctx, filter) {
				if err == nil && !c.Channel.matches(s.Channel.ChannelHead) {
					continue
				}
				if !yield(s, err) {
					return
				}
			}
		}
		names, err := namesByID(c.outputFlags, api.Hubs(ctx, site), hubName)
		if err != nil {
			return err
		}
		header := []string{"HUB", "CONNECTION", "DEVICE", "ROOM", "CHANNEL", "VALUE", "UNIT", "STATUS", "OBSERVED"}
		return list(out.Out, c.outputFlags, chosen, header, func(s client.State) []string {
			return []string{
				cmp.Or(names[s.HubID], s.HubID), string(s.Connection.Status), orEmpty(s.Device.Name),
				orEmpty(s.Device.Room), nameOfChannel(s.Channel.ChannelHead), textOf(s.Channel.Value),
				orEmpty(s.Channel.Unit), string(s.Channel.Status), timeOrEmpty(s.Channel.ObservedAt),
			}
		})
	})
}
