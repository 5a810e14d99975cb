package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/domain"
	"hubcloud/hubbridge/kit/virtualhub"
)

// simCommand groups the commands that make running virtual hubs misbehave.
type simCommand struct {
	List simListCommand `cmd:"" help:"List the running virtual hubs, or the devices of one."`

	Offline simHub         `cmd:"" help:"Disconnect: hub.disconnected."`
	Online  simHub         `cmd:"" help:"Connect again: hub.connected."`
	Cut     simHub         `cmd:"" help:"Lose the connection without a goodbye, and connect again."`
	Restart simHub         `cmd:"" help:"Restart, as after a power cut."`
	Reset   simHub         `cmd:"" help:"Reset to factory state: a new log with hub.log_reset, older cursors are expired (410 cursor_expired)."`
	Drop    simDropCommand `cmd:"" help:"Lose events: hub.events_skipped."`
	Malform simHub         `cmd:"" help:"Send malformed events: hub.events_skipped for each."`

	Late    simLateCommand   `cmd:"" help:"Answer each request late; from 10s on, 504 hub_timeout."`
	Reject  simSwitchCommand `cmd:"" help:"Reject every command: 422 command_refused."`
	Radio   simSwitchCommand `cmd:"" help:"Lose the radio: 503 hub_unavailable."`
	Clock   simSwitchCommand `cmd:"" help:"Forget the time: clock_trusted is false, and 503 hub_unavailable."`
	Jam     simDeviceVerb    `cmd:"" help:"Jam a lock: its commands end with the opposite value (status diverged) and an alarm."`
	Unjam   simDeviceVerb    `cmd:"" help:"End jam."`
	Smoke   simSensorCommand `cmd:"" help:"Trigger a smoke alarm: channel.observed."`
	Leak    simSensorCommand `cmd:"" help:"Trigger a leak sensor: channel.observed."`
	Battery simBattery       `cmd:"" help:"Report a low battery: channel.observed."`
	Code    simCode          `cmd:"" help:"Enter a code at the keypad of a lock: an alarm with the code's slot, and channel.observed if it opens."`
	Report  simReportCommand `cmd:"" help:"Report a value of any channel, as when a person turns the knob: channel.observed."`
	Set     simReportCommand `cmd:"" help:"Command a channel from within the building: channel.desired, then channel.observed."`

	Unreachable simDeviceVerb    `cmd:"" help:"Lose a device: device.unavailable."`
	Reachable   simDeviceVerb    `cmd:"" help:"Find a lost device again: device.available."`
	Rename      simRenameCommand `cmd:"" help:"Rename a device, as a firmware update may do: device.updated."`
	Join        simJoinCommand   `cmd:"" help:"Let a device join: device.added."`
	Leave       simDeviceVerb    `cmd:"" help:"Remove a device by its button: device.forgotten."`
	Emit        simEmitCommand   `cmd:"" help:"Emit an event of any type, such as credential.created or rule.fired."`
}

// simFlags select the hubs.
type simFlags struct {
	outputFlags
	DataDir string `help:"Only the hubs of the process with this data directory (or, for a virtual hub, --dir)." type:"path" placeholder:"DIR"`
}

// find returns the running processes and their hubs. It returns an error if none runs a hub.
func (f simFlags) find(ctx context.Context) ([]virtualhub.Process, error) {
	processes, err := virtualhub.Find(ctx)
	if err != nil {
		return nil, err
	}
	where := ""
	if f.DataDir != "" {
		where = " on " + f.DataDir
		dir, err := filepath.Abs(f.DataDir)
		if err != nil {
			return nil, err
		}
		for i := range processes {
			processes[i].Hubs = slices.DeleteFunc(
				processes[i].Hubs, func(h virtualhub.Info) bool { return h.DataDir != dir },
			)
		}
	}
	processes = slices.DeleteFunc(
		processes, func(p virtualhub.Process) bool { return len(p.Hubs) == 0 },
	)
	if len(processes) == 0 {
		return nil, fmt.Errorf(
			"no virtual hub runs%s: start some with `hubcloud dev` or `hubcloud virtualhub`", where,
		)
	}
	return processes, nil
}

// findHub returns the hub that name stands for, and its process.
func (f simFlags) findHub(
	ctx context.Context, name string,
) (process virtualhub.Process, hub virtualhub.Info, err error) {
	processes, err := f.find(ctx)
	if err != nil {
		return process, hub, err
	}
	// matching returns the hubs that match, sorted; process and hub are then the last one.
	matching := func(matches func(h virtualhub.Info) bool) (names []string) {
		for _, p := range processes {
			for _, h := range p.Hubs {
				if matches(h) {
					names = append(names, strings.TrimSpace(h.ID+" "+h.Name))
					process, hub = p, h
				}
			}
		}
		slices.Sort(names)
		return names
	}
	found := matching(func(h virtualhub.Info) bool {
		return strings.EqualFold(h.ID, name) || strings.EqualFold(h.Name, name)
	})
	if len(found) == 0 {
		found = matching(func(h virtualhub.Info) bool {
			return strings.Contains(strings.ToLower(h.ID+" "+h.Name), strings.ToLower(name))
		})
	}
	switch {
	case len(found) == 1:
		return process, hub, nil
	case len(found) == 0:
		all := matching(func(virtualhub.Info) bool { return true })
		return process, hub, installation.Usagef(
			"no virtual hub %q runs; running: %s", name, strings.Join(all, ", "),
		)
	case found[0] == found[len(found)-1]:
		return process, hub, installation.Usagef(
			"several processes run the hub %q: name one with --data-dir", name,
		)
	}
	return process, hub, installation.Usagef(
		"hub %q is ambiguous: %s", name, strings.Join(found, ", "),
	)
}

// simListCommand lists hubs or devices.
type simListCommand struct {
	simFlags
	Hub string `arg:"" optional:"" help:"Id or name of the hub whose devices to list."`
}

// Run lists the hubs, or the devices of one.
func (c *simListCommand) Run(ctx context.Context, out Output) error {
	if c.Hub != "" {
		return c.listDevices(ctx, out)
	}
	processes, err := c.find(ctx)
	if err != nil {
		return err
	}
	var hubs []virtualhub.Info
	for _, p := range processes {
		hubs = append(hubs, p.Hubs...)
	}
	slices.SortFunc(hubs, func(a, b virtualhub.Info) int {
		return strings.Compare(a.ID+a.DataDir, b.ID+b.DataDir)
	})
	header := []string{
		"HUB", "NAME", "CONNECTED", "DEVICES", "UNSENT", "FAULTS", "DATA DIRECTORY",
	}
	return list(out.Out, c.outputFlags, each(hubs), header, func(h virtualhub.Info) []string {
		faults, _ := json.Marshal(h.Faults) // a struct of plain values
		return []string{
			h.ID, h.Name, yesNo(h.Connected), fmt.Sprint(len(h.Devices)),
			fmt.Sprint(h.Newest - min(h.Newest, h.Acked)),
			strings.NewReplacer(`"`, "", "{", "", "}", "").Replace(string(faults)), h.DataDir,
		}
	})
}

func (c *simListCommand) listDevices(ctx context.Context, out Output) error {
	_, hub, err := c.findHub(ctx, c.Hub)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(out.Out, hub)
	}
	header := []string{"DEVICE", "NAME", "REACHABLE", "CHANNELS"}
	return list(out.Out, c.outputFlags, each(hub.Devices), header, func(d virtualhub.DeviceInfo) []string {
		return []string{
			fmt.Sprint(d.ID), d.Name, yesNo(d.Available), strings.Join(d.Channels, " "),
		}
	})
}

// do runs an action on the hub that name stands for, and prints what the hub did.
func (f simFlags) do(ctx context.Context, out Output, name string, a virtualhub.Action) error {
	process, hub, err := f.findHub(ctx, name)
	if err != nil {
		return err
	}
	message, err := process.Do(ctx, hub.ID, a)
	if wrong := new(virtualhub.ActionError); errors.As(err, &wrong) {
		return installation.Usagef("%s: %s", hub.ID, wrong.Message)
	}
	if err != nil {
		return err
	}
	return f.show(
		out.Out, object{{"hub_id", hub.ID}, {"message", message}}, "%s: %s.\n",
		domain.PlainLine(hub.ID+" "+hub.Name), message,
	)
}
