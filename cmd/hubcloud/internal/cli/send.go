package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hubcloud/httpapi/client"
)

// sendCommand sends a command to a device.
type sendCommand struct {
	consumer
	Hub     string `arg:"" help:"Hub of the device, by its id."`
	Device  int64  `arg:"" help:"Device, by its id."`
	Channel string `arg:"" name:"key" help:"Channel to set, by its key, such as lock or heating_setpoint."`
	Value   string `arg:"" help:"What to set it to, as JSON; a name needs no quotes."`

	Endpoint       int           `help:"Endpoint of the channel, when the device has several of the key." default:"0"`
	Wait           bool          `help:"Wait until the device reports what came of it."`
	Limit          time.Duration `help:"How long to wait at most." default:"30s"`
	IdempotencyKey string        `help:"Key under which the command runs once, however often it is sent; made when not given." name:"idempotency-key" placeholder:"TEXT" env:"-"`
}

// Help is the longer text of --help.
func (*sendCommand) Help() string {
	return `Sends a command to a device. The hub accepts it or refuses it at once; what comes of it shows a moment later, and with --wait this
command waits for that: exit status 1 when the device reports something else, when the hub gives up, and when the time is over. The
key needs the scope hubs:command, and for --wait also events:read and hubs:read.

  hubcloud send hub-demo-0000-0001 1 lock true --wait
  hubcloud send hub-demo-0000-0001 2 heating_setpoint 21.5
  hubcloud send hub-demo-0000-0001 2 mode heat
  hubcloud send hub-demo-0000-0001 5 color '{"red": 255, "green": 120, "blue": 0}'

"hubcloud devices HUB DEVICE" shows which channels a device has and what they read. Put -- before a value that begins with a minus.`
}

// Validate checks what the flags say together.
func (c *sendCommand) Validate() error {
	if c.Endpoint < 0 {
		return fmt.Errorf("--endpoint %d: must not be negative", c.Endpoint)
	}
	if c.Limit <= 0 {
		return fmt.Errorf("--limit %s: must be more than nothing", c.Limit)
	}
	return c.consumer.Validate()
}

// sentResult is what the command prints with --json: the API's answer, and the outcome when it was
// waited for.
type sentResult struct {
	client.Sent
	Outcome *client.Outcome `json:"outcome,omitempty"`
}

// Run sends the command.
func (c *sendCommand) Run(ctx context.Context, out Streams) error {
	command := client.Command{
		HubID: c.Hub, DeviceID: c.Device, Key: c.Channel, Endpoint: c.Endpoint,
		Value: valueOf(c.Value), IdempotencyKey: c.IdempotencyKey,
	}
	return c.do(ctx, out, func(api *client.Client) error {
		if !c.Wait {
			sent, err := api.Send(ctx, command)
			if err != nil {
				return err
			}
			return c.show(out, sentResult{Sent: sent})
		}
		sent, outcome, err := api.SendAndWait(ctx, command, c.Limit)
		if outcome.Status == "" { // it did not come that far
			return err
		}
		return errors.Join(c.show(out, sentResult{sent, &outcome}), err)
	})
}

// valueOf takes JSON as it is, and everything else as a name.
func valueOf(text string) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

func (c *sendCommand) show(out Streams, result sentResult) error {
	if c.JSON {
		return printJSON(out.Out, result)
	}
	name := nameOfChannel(result.Channel.ChannelHead)
	if result.Outcome == nil {
		_, err := fmt.Fprintf(
			out.Out, "%s: %s asked, %s\n", name, textOf(result.Channel.Desired),
			result.Channel.Status,
		)
		return err
	}
	_, err := fmt.Fprintf(
		out.Out, "%s: %s asked, %s, reads %s\n", name, textOf(result.Channel.Desired),
		result.Outcome.Status, result.Outcome.Value,
	)
	return err
}
