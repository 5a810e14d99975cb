package cli

import (
	"context"
	"strconv"
	"strings"

	"hubcloud/httpapi/client"
)

// devicesCommand asks a hub for its devices.
type devicesCommand struct {
	consumer
	Hub    string `arg:"" help:"Hub to ask, by its id."`
	Device *int64 `arg:"" optional:"" help:"One device, by its id, with what its channels read."`
}

// Help is the longer text of --help.
func (*devicesCommand) Help() string {
	return `Asks a hub for its devices; with a device, for what each of its channels reads, what was last asked of it, and where it stands in
between. The hub must be online. The key needs the scope hubs:read.

  hubcloud devices hub-demo-0000-0001
  hubcloud devices hub-demo-0000-0001 1
  hubcloud devices hub-demo-0000-0001 1 --json | jq '.channels[] | select(.key == "lock").value'`
}

// Run asks the hub.
func (c *devicesCommand) Run(ctx context.Context, out Streams) error {
	return c.do(ctx, out, func(api *client.Client) error {
		if c.Device != nil {
			device, err := api.Device(ctx, c.Hub, *c.Device)
			if err != nil {
				return err
			}
			return c.showDevice(out, device)
		}
		devices, err := api.Devices(ctx, c.Hub)
		if err != nil {
			return err
		}
		return c.listDevices(out, devices)
	})
}

func (c *devicesCommand) listDevices(out Streams, devices []client.ListedDevice) error {
	if c.JSON {
		for _, device := range devices {
			if err := printJSON(out.Out, device); err != nil {
				return err
			}
		}
		return nil
	}
	t := newTable(out.Out, "DEVICE", "NAME", "ROOM", "MODEL", "CHANNELS")
	for _, device := range devices {
		channels := make([]string, 0, len(device.Channels))
		for _, channel := range device.Channels {
			channels = append(channels, nameOfChannel(channel.ChannelHead))
		}
		t.row(
			strconv.FormatInt(device.ID, 10), device.Name, orNothing(device.Room),
			device.Manufacturer+" "+device.Model, strings.Join(channels, " "),
		)
	}
	return t.flush()
}

func (c *devicesCommand) showDevice(out Streams, device client.Device) error {
	if c.JSON {
		return printJSON(out.Out, device)
	}
	t := newTable(
		out.Out, "CHANNEL", "VALUE", "UNIT", "STATUS", "ASKED", "OBSERVED",
		"REACHABLE", "TAKES COMMANDS",
	)
	for _, channel := range device.Channels {
		observed := ""
		if channel.ObservedAt != nil {
			observed = shortTime(*channel.ObservedAt)
		}
		t.row(
			nameOfChannel(channel.ChannelHead), textOf(channel.Value), orNothing(channel.Unit),
			string(channel.Status), textOf(channel.Desired), observed, yesNo(channel.Available),
			yesNo(channel.Writable),
		)
	}
	return t.flush()
}

// nameOfChannel is the key, and the endpoint when the device has several of the key.
func nameOfChannel(channel client.ChannelHead) string {
	if channel.Endpoint == 0 {
		return channel.Key
	}
	return channel.Key + "#" + strconv.Itoa(channel.Endpoint)
}

// textOf shows a value as JSON, nothing for none.
func textOf(value client.Value) string {
	if value == nil {
		return ""
	}
	return value.String()
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
