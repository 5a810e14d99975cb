package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"hubcloud/hubbridge/kit/virtualhub"
)

// simHub is an action on a hub.
type simHub struct {
	simFlags
	Hub string `arg:"" help:"Id or name of the hub, or a part of it."`
}

// simAction is a command that adds its own arguments to the action.
type simAction interface{ complete(a *virtualhub.Action) }

// Run runs the action that the selected command is named after. Some commands end the fault of
// another.
func (c *simHub) Run(ctx context.Context, out Output, selected *kong.Context) error {
	a := virtualhub.Action{Verb: selected.Selected().Name}
	switch a.Verb {
	case "online":
		a.Verb, a.Off = "offline", true
	case "unjam":
		a.Verb, a.Off = "jam", true
	case "reachable":
		a.Verb, a.Off = "unreachable", true
	}
	if command, ok := selected.Selected().Target.Addr().Interface().(simAction); ok {
		command.complete(&a)
	}
	return c.do(ctx, out, c.Hub, a)
}

// simDeviceVerb is an action on a device.
type simDeviceVerb struct {
	simHub
	Device string `arg:"" optional:"" help:"Id or name of the device. Defaults to the first lock."`
}

func (c *simDeviceVerb) complete(a *virtualhub.Action) {
	a.Device = c.Device
}

// simSwitchCommand begins or ends a fault of a hub.
type simSwitchCommand struct {
	simHub
	Off bool `help:"End it." env:"-" aliases:"clear"`
}

func (c *simSwitchCommand) complete(a *virtualhub.Action) {
	a.Off = c.Off
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

func (c *simDropCommand) complete(a *virtualhub.Action) {
	a.Count = c.Count
}

// simLateCommand delays answers.
type simLateCommand struct {
	simHub
	Delay time.Duration `arg:"" help:"How late, such as 3s; 0s to answer at once again."`
}

func (c *simLateCommand) complete(a *virtualhub.Action) {
	a.Delay = c.Delay
}

// simSensorCommand triggers a boolean sensor, whose channel has the name of the command.
type simSensorCommand struct {
	simHub
	Device string `arg:"" optional:"" help:"Id or name of the device. Defaults to the first with such a sensor."`
	Clear  bool   `help:"End it." env:"-" aliases:"off"`
}

func (c *simSensorCommand) complete(a *virtualhub.Action) {
	a.Verb, a.Channel, a.Device = "report", a.Verb, c.Device
	a.Value = fmt.Appendf(nil, "%t", !c.Clear)
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

func (c *simBattery) complete(a *virtualhub.Action) {
	a.Verb, a.Channel, a.Device = "report", a.Verb, c.Device
	a.Value = fmt.Appendf(nil, "%g", c.Percent)
}

// simCode enters a code.
type simCode struct {
	simHub
	Code   string `arg:"" help:"Digits of the code."`
	Device string `arg:"" optional:"" help:"Id or name of the lock. Defaults to the first."`
}

func (c *simCode) complete(a *virtualhub.Action) {
	a.Device, a.Value = c.Device, fmt.Appendf(nil, "%q", c.Code)
}

// simReportCommand reports or commands a value of a channel.
type simReportCommand struct {
	simHub
	Device  string      `arg:"" help:"Id or name of the device."`
	Channel channelName `arg:"" name:"channel" help:"Key of the channel, such as lock or temperature; with its endpoint, if the device has several, such as switch#1."`
	Value   string      `arg:"" help:"Value, as JSON. A name needs no quotes."`
}

func (c *simReportCommand) complete(a *virtualhub.Action) {
	a.Device, a.Channel, a.Endpoint = c.Device, c.Channel.Key, c.Channel.Endpoint
	a.Value = valueOf(c.Value)
}

// simRenameCommand renames a device.
type simRenameCommand struct {
	simHub
	Device string `arg:"" help:"Id or name of the device."`
	Name   string `arg:"" help:"New name."`
	Remove string `help:"Key of a channel that the device no longer has." placeholder:"KEY" env:"-"`
}

func (c *simRenameCommand) complete(a *virtualhub.Action) {
	a.Device, a.Name, a.Channel = c.Device, c.Name, c.Remove
}

// simJoinCommand lets a device join.
type simJoinCommand struct {
	simHub
	Kind string `arg:"" optional:"" help:"Kind of the device, such as lock, thermostat, dimmer or smoke_alarm." default:"contact_sensor"`
	Name string `help:"Name of the device. Defaults to the name of its kind." placeholder:"NAME" env:"-"`

	Interview  time.Duration `help:"How long the hub asks the device for its channels, which it adds with device.updated." placeholder:"DURATION" env:"-"`
	WakesEvery time.Duration `help:"Let the device sleep, and wake at this interval; commands wait until then." placeholder:"DURATION" env:"-"`
}

func (c *simJoinCommand) complete(a *virtualhub.Action) {
	a.Kind, a.Name, a.Interview, a.WakesEvery = c.Kind, c.Name, c.Interview, c.WakesEvery
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

func (c *simEmitCommand) complete(a *virtualhub.Action) {
	a.Type, a.Device, a.Data = c.Type, c.Device, json.RawMessage(c.Data)
}
