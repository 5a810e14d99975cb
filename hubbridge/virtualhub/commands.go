package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"hubcloud/hubbridge/protocol"
	"hubcloud/hubbridge/virtualhub/device"
	"hubcloud/hubbridge/virtualhub/journal"
)

// commandMemory is how long the answer to a command is remembered.
const commandMemory = 24 * time.Hour

// maxCommandID is the longest command id that is taken, in bytes.
const maxCommandID = 255

// answered is the first answer to a command id.
type answered struct {
	At     time.Time       `json:"at"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *protocol.Error `json:"error,omitempty"`
}

type commandParams struct {
	CommandID string          `json:"command_id"`
	DeviceID  *int64          `json:"device_id"`
	Key       string          `json:"key"`
	Endpoint  int             `json:"endpoint"`
	Value     json.RawMessage `json:"value"`
}

type commandResult struct {
	Channel device.CommandedChannel `json:"channel"`
}

// command runs a command once. It is called with the lock held, so that of two with the same id one
// is the first.
func (c *controller) command(params commandParams, now time.Time) (any, *protocol.Error) {
	switch {
	case params.CommandID == "" || len(params.CommandID) > maxCommandID:
		return nil, refuse(
			"invalid_request", "command_id must have 1 to %d characters", maxCommandID,
		)
	case params.DeviceID == nil:
		return nil, refuse("invalid_request", "device_id is missing")
	}
	if first, ok := c.commands[params.CommandID]; ok && now.Sub(first.At) < commandMemory {
		if first.Error != nil {
			return nil, first.Error
		}
		return first.Result, nil
	}
	if unavailable := c.unavailable(); unavailable != nil {
		return nil, unavailable
	}
	change := journal.Change{Set: map[string]json.RawMessage{}}
	result, refusal, undo := c.run(params, now, &change)
	answer := answered{At: now, Error: refusal}
	if refusal == nil {
		answer.Result = mustJSON(result)
	}
	if c.cfg.Dir != "" {
		change.Set[entryCommand+params.CommandID] = mustJSON(answer)
	}
	if _, err := c.journal.Commit(change); err != nil {
		undo()
		return nil, refuse("storage", "the hub cannot keep the command: %v", err)
	}
	c.commands[params.CommandID] = answer
	c.stir()
	if refusal != nil {
		return nil, refusal
	}
	return answer.Result, nil
}

// run hands a command to its device and adds what follows to change; undo takes the hand-over back.
func (c *controller) run(
	params commandParams, now time.Time, change *journal.Change,
) (result any, refusal *protocol.Error, undo func()) {
	undo = func() {}
	d := c.device(*params.DeviceID)
	if d == nil {
		return nil, refuse("not_found", "no device %d", *params.DeviceID), undo
	}
	ref := device.Ref{Key: params.Key, Endpoint: params.Endpoint}
	value, err := d.Check(ref, params.Value)
	var refused *device.Refusal
	if errors.As(err, &refused) {
		return nil, &protocol.Error{Type: refused.Type, Message: refused.Message}, undo
	}
	if c.faults.RefuseCommands {
		return nil, refuse("command_refused", "the hub will not drive %s", d.Spec.Name), undo
	}
	before := d.Snapshot()
	channel, desired := d.Command(ref, value, now)
	change.Events = append(change.Events, c.event(eventDesired, d.ID, now, desired))
	maps.Copy(change.Set, c.entries(d))
	return commandResult{channel}, nil, func() {
		if was, err := device.Restore(before, seed(c.id)); err == nil {
			was.Jammed = d.Jammed
			*d = *was
		}
	}
}

// unavailable is why the hub cannot act now; nil when it can.
func (c *controller) unavailable() *protocol.Error {
	switch {
	case c.faults.RadioDown:
		return refuse("hub_unavailable", "the hub's radio is down")
	case c.faults.ClockUnknown:
		return refuse("hub_unavailable", "the hub does not know the time yet")
	}
	return nil
}

// sweep forgets commands that are older than they are remembered, and returns their entries. Once a
// minute is often enough.
func (c *controller) sweep(now time.Time) (expired []string) {
	if now.Before(c.nextSweep) {
		return nil
	}
	c.nextSweep = now.Add(time.Minute)
	for id, a := range c.commands {
		if now.Sub(a.At) >= commandMemory {
			delete(c.commands, id)
			expired = append(expired, entryCommand+id)
		}
	}
	if len(c.commands) == 0 {
		c.nextSweep = time.Time{}
	}
	return expired
}

func refuse(kind, format string, args ...any) *protocol.Error {
	return &protocol.Error{Type: kind, Message: fmt.Sprintf(format, args...)}
}
