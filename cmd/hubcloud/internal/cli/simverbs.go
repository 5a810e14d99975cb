package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/hubbridge/kit/virtualhub"
)

// simHub is an action on a hub.
type simHub struct {
	simFlags
	Hub string `arg:"" help:"Id or name of the hub, or a part of it."`
}

// act runs the action of the selected command. Some commands end the fault of another.
func (c *simHub) act(
	ctx context.Context, out Output, selected *kong.Context, a virtualhub.Action,
) error {
	switch a.Verb = selected.Selected().Name; a.Verb {
	case "online":
		a.Verb, a.Off = "offline", true
	case "unjam":
		a.Verb, a.Off = "jam", true
	case "reachable":
		a.Verb, a.Off = "unreachable", true
	}
	return c.do(ctx, out, c.Hub, a)
}

// simVerb is an action that needs a hub only.
type simVerb struct{ simHub }

// Run runs the action.
func (c *simVerb) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{})
}

// simDeviceVerb is an action on a device.
type simDeviceVerb struct {
	simHub
	Device string `arg:"" optional:"" help:"Id or name of the device. Defaults to the first lock."`
}

// Run runs the action.
func (c *simDeviceVerb) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{Device: c.Device})
}

// simSwitchCommand begins or ends a fault of a hub.
type simSwitchCommand struct {
	simHub
	Off bool `help:"End it." env:"-" aliases:"clear"`
}

// Run runs the action.
func (c *simSwitchCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{Off: c.Off})
}

// simDropCommand loses events.
type simDropCommand struct {
	simHub
	Count uint64 `help:"How many events to lose, 1 to 1000000. Events that the cloud has not stored yet are lost too." default:"10" env:"-"`
}

// Validate checks the flags. The flag parser calls it.
func (c *simDropCommand) Validate() error {
	if c.Count < 1 || c.Count > 1_000_000 {
		return fmt.Errorf("--count %d: must be 1 to 1000000", c.Count)
	}
	return nil
}

// Run runs the action.
func (c *simDropCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{Count: c.Count})
}

// simLateCommand delays answers.
type simLateCommand struct {
	simHub
	Delay time.Duration `arg:"" help:"How late, such as 3s; 0s to answer at once again."`
}

// Run runs the action.
func (c *simLateCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{Delay: c.Delay})
}

// simSensorCommand triggers a boolean sensor, whose channel has the name of the command.
type simSensorCommand struct {
	simHub
	Device string `arg:"" optional:"" help:"Id or name of the device. Defaults to the first with such a sensor."`
	Clear  bool   `help:"End it." env:"-" aliases:"off"`
}

// Run runs the action.
func (c *simSensorCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	value := json.RawMessage("true")
	if c.Clear {
		value = json.RawMessage("false")
	}
	return c.do(ctx, out, c.Hub, virtualhub.Action{
		Verb: "report", Device: c.Device, Channel: selected.Selected().Name, Value: value,
	})
}

// simBattery reports the charge of a battery.
type simBattery struct {
	simHub
	Percent float64 `arg:"" optional:"" help:"Charge in percent, 0 to 100." default:"9"`
	Device  string  `help:"Id or name of the device. Defaults to the first with a battery." placeholder:"DEVICE" env:"-"`
}

// Validate checks the arguments. The flag parser calls it.
func (c *simBattery) Validate() error {
	if c.Percent < 0 || c.Percent > 100 {
		return fmt.Errorf("<percent> %g: must be 0 to 100", c.Percent)
	}
	return nil
}

// Run runs the action.
func (c *simBattery) Run(ctx context.Context, out Output) error {
	return c.do(ctx, out, c.Hub, virtualhub.Action{
		Verb: "report", Device: c.Device, Channel: "battery",
		Value: fmt.Appendf(nil, "%g", c.Percent),
	})
}

// simReportCommand reports or commands a value of a channel.
type simReportCommand struct {
	simHub
	Device   string `arg:"" help:"Id or name of the device."`
	Channel  string `arg:"" name:"key" help:"Key of the channel, such as lock or temperature."`
	Value    string `arg:"" help:"Value, as JSON. A name needs no quotes."`
	Endpoint int    `help:"Endpoint of the channel, when the device has several channels with the key." default:"0" env:"-"`
}

// Run runs the action.
func (c *simReportCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	value, err := json.Marshal(valueOf(c.Value))
	if err != nil {
		return installation.AsUsage(err)
	}
	return c.act(ctx, out, selected, virtualhub.Action{
		Device: c.Device, Channel: c.Channel, Endpoint: c.Endpoint, Value: value,
	})
}

// simRenameCommand renames a device.
type simRenameCommand struct {
	simHub
	Device string `arg:"" help:"Id or name of the device."`
	Name   string `arg:"" help:"New name."`
	Remove string `help:"Key of a channel that the device no longer has." placeholder:"KEY" env:"-"`
}

// Run runs the action.
func (c *simRenameCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{
		Device: c.Device, Name: c.Name, Channel: c.Remove,
	})
}

// simJoinCommand lets a device join.
type simJoinCommand struct {
	simHub
	Kind string `arg:"" optional:"" help:"Kind of the device, such as lock, thermostat, dimmer or smoke_alarm." default:"contact_sensor"`
	Name string `help:"Name of the device. Defaults to the name of its kind." placeholder:"NAME" env:"-"`

	Interview  time.Duration `help:"How long the hub asks the device for its channels, which it adds with device.updated." placeholder:"DURATION" env:"-"`
	WakesEvery time.Duration `help:"Let the device sleep, and wake at this interval; commands wait until then." placeholder:"DURATION" env:"-"`
}

// Run runs the action.
func (c *simJoinCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{
		Kind: c.Kind, Name: c.Name, Interview: c.Interview, WakesEvery: c.WakesEvery,
	})
}

// simEmitCommand emits an event of any type.
type simEmitCommand struct {
	simHub
	Type   string `arg:"" help:"Type of the event, such as device.join_failed, credential.created, credential.applied, credential.revoked, rule.created, rule.updated, rule.fired or rule.deleted."`
	Device string `help:"Id or name of the event's device. Defaults to the first lock for credential events, to none for others." placeholder:"DEVICE" env:"-"`
	Data   string `help:"Data of the event, as a JSON object. Defaults to an example of the type." placeholder:"JSON" env:"-"`
}

// Validate checks the flags. The flag parser calls it.
func (c *simEmitCommand) Validate() error {
	var object map[string]any
	if c.Data != "" && (json.Unmarshal([]byte(c.Data), &object) != nil || object == nil) {
		return fmt.Errorf("--data %s: must be a JSON object", c.Data)
	}
	if c.Type == "" {
		return fmt.Errorf("<type>: must not be empty")
	}
	return nil
}

// Run runs the action.
func (c *simEmitCommand) Run(ctx context.Context, out Output, selected *kong.Context) error {
	return c.act(ctx, out, selected, virtualhub.Action{
		Type: c.Type, Device: c.Device, Data: json.RawMessage(c.Data),
	})
}
