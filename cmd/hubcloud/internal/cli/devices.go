package cli

import (
	"context"
	"strconv"
	"strings"

	"hubcloud/httpapi/client"
)

// devicesCommand lists the devices of a hub, or shows one.
type devicesCommand struct {
	apiFlags
	Hub    string `arg:"" help:"Id or name of the hub." complete:"hub"`
	Device string `arg:"" optional:"" help:"Id or name of one device, to show its channels." complete:"device"`
}

// Run prints the devices, or the device.
func (c *devicesCommand) Run(ctx context.Context, out Output) error {
	return c.withClient(ctx, func(api *client.Client) error {
		if c.Device != "" {
			hub, id, err := deviceID(ctx, api, c.Hub, c.Device)
			if err != nil {
				return err
			}
			device, err := api.Device(ctx, hub, id)
			if err != nil {
				return err
			}
			return c.showDevice(out, device)
		}
		hub, err := hubID(ctx, api, c.Hub)
		if err != nil {
			return err
		}
		devices, err := api.Devices(ctx, hub)
		if err != nil {
			return err
		}
		return c.listDevices(out, devices)
	})
}

func (c *devicesCommand) listDevices(out Output, devices []client.ListedDevice) error {
	header := []string{"DEVICE", "NAME", "ROOM", "MODEL", "CHANNELS"}
	return list(out.Out, c.outputFlags, each(devices), header, func(d client.ListedDevice) []string {
		channels := make([]string, 0, len(d.Channels))
		for _, channel := range d.Channels {
			channels = append(channels, nameOfChannel(channel.ChannelHead))
		}
		return []string{
			strconv.FormatInt(d.ID, 10), d.Name, orEmpty(d.Room), d.Manufacturer + " " + d.Model,
			strings.Join(channels, " "),
		}
	})
}

func (c *devicesCommand) showDevice(out Output, device client.Device) error {
	if c.JSON {
		return printJSON(out.Out, device)
	}
	header := []string{
		"CHANNEL", "VALUE", "UNIT", "STATUS", "DESIRED", "OBSERVED", "AVAILABLE", "WRITABLE",
	}
	return list(
		out.Out, c.outputFlags, each(device.Channels), header, func(ch client.Channel) []string {
			return []string{
				nameOfChannel(ch.ChannelHead), textOf(ch.Value), orEmpty(ch.Unit),
				string(ch.Status), textOf(ch.Desired), timeOrEmpty(ch.ObservedAt), yesNo(ch.Available),
				yesNo(ch.Writable),
			}
		},
	)
}

// nameOfChannel returns the channel's key, and its endpoint unless that is 0.
func nameOfChannel(channel client.ChannelHead) string {
	if channel.Endpoint == 0 {
		return channel.Key
	}
	return channel.Key + "#" + strconv.Itoa(channel.Endpoint)
}

// textOf returns a value as JSON, or "" for none.
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
