package cli

import (
	"context"

	"hubcloud/httpapi/client"
)

// stateCommand lists what channels last reported.
type stateCommand struct {
	apiFlags
	Channel string `arg:"" optional:"" name:"key" help:"Only channels with this key, such as lock."`
	Site    string `help:"Only at this site." placeholder:"SITE_ID"`
	Hub     string `help:"Only of this hub." placeholder:"HUB_ID"`
	Value   *bool  `help:"Only channels whose value is true, or false." placeholder:"true|false"`
	Status  string `help:"Only channels with this status: unknown, synchronized, pending, diverged or failed." placeholder:"STATUS"`
}

// Help returns the long help text.
func (*stateCommand) Help() string {
	return `Lists what channels last reported, of all hubs, also of those that are offline. No hub is asked. The key needs the scope hubs:read.

Which doors are unlocked? Which commands had another outcome?

  hubcloud state lock --value false
  hubcloud state --status diverged
  hubcloud state temperature --json | jq -r '[.device.name, .channel.value] | @tsv'`
}

// Run lists the states.
func (c *stateCommand) Run(ctx context.Context, out Output) error {
	filter := client.StateFilter{
		SiteID: c.Site, HubID: c.Hub, Key: c.Channel, Value: c.Value,
		Status: client.ChannelStatus(c.Status),
	}
	return c.withClient(ctx, out, func(api *client.Client) error {
		header := []string{
			"HUB", "CONNECTION", "DEVICE", "ROOM", "CHANNEL", "VALUE", "UNIT", "STATUS", "OBSERVED",
		}
		return list(out.Out, c.outputFlags, api.States(ctx, filter), header, rowOfState)
	})
}

func rowOfState(s client.State) []string {
	observed := ""
	if s.Channel.ObservedAt != nil {
		observed = shortTime(*s.Channel.ObservedAt)
	}
	return []string{
		s.HubID, string(s.Connection.Status), orEmpty(s.Device.Name), orEmpty(s.Device.Room),
		nameOfChannel(s.Channel.ChannelHead), textOf(s.Channel.Value), orEmpty(s.Channel.Unit),
		string(s.Channel.Status), observed,
	}
}
