package controller

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

// commandMemory is how long the answer to a command id is remembered.
const commandMemory = 24 * time.Hour

// maxCommandID is the length of the longest command id, in bytes.
const maxCommandID = 255

// rememberedAnswer is the first answer to a command id, with exactly one of Result and Error.
type rememberedAnswer struct {
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

// command runs a command, or returns the first answer again if its id is remembered. The caller
// holds the lock, so of two requests with one id only the first runs.
func (c *Controller) command(params commandParams, now time.Time) (any, *protocol.Error) {
	switch {
	case params.CommandID == "" || len(params.CommandID) > maxCommandID:
		return nil, reject(
			protocol.ErrorInvalidRequest, "command_id must have 1 to %d characters", maxCommandID,
		)
	case params.DeviceID == nil:
		return nil, reject(protocol.ErrorInvalidRequest, "device_id is missing")
	}
	if first, ok := c.commands[params.CommandID]; ok && now.Sub(first.At) < commandMemory {
		if first.Error != nil {
			return nil, first.Error
		}
		return first.Result, nil
	}
	if unavailable := c.unavailable(); unavailable != nil {
		return nil, unavailable // not remembered: the command may work later
	}
	change := journal.Change{Set: map[string]json.RawMessage{}}
	result, rejection, undo := c.run(params, now, &change)
	answer := rememberedAnswer{At: now, Error: rejection}
	if rejection == nil {
		answer.Result = mustJSON(result)
	}
	if c.cfg.Dir != "" {
		change.Set[entryCommand+params.CommandID] = mustJSON(answer)
	}
	if _, err := c.journal.Commit(change); err != nil {
		undo()
		return nil, reject("storage", "the hub cannot store the command: %v", err)
	}
	c.commands[params.CommandID] = answer
	c.notify()
	if rejection != nil {
		return nil, rejection
	}
	return answer.Result, nil
}

// run starts a command on its device and adds the device's new state and event to change. undo
// restores the device.
func (c *Controller) run(
	params commandParams, now time.Time, change *journal.Change,
) (result any, rejection *protocol.Error, undo func()) {
	undo = func() {}
	d, rejection := c.findDevice(params.DeviceID)
	if rejection != nil {
		return nil, rejection, undo
	}
	ref := device.Ref{Key: params.Key, Endpoint: params.Endpoint}
	value, err := d.Check(ref, params.Value)
	var rejected *device.Rejection
	if errors.As(err, &rejected) {
		return nil, &protocol.Error{Type: rejected.Type, Message: rejected.Message}, undo
	}
	if c.faults.RejectCommands {
		return nil, reject(
			protocol.ErrorCommandRefused, "the hub will not drive %s", d.Spec.Name,
		), undo
	}
	before := d.Snapshot()
	channel, desired := d.Command(ref, value, now)
	change.Events = append(change.Events, c.event(eventDesired, d.ID, now, desired))
	maps.Copy(change.Set, c.entries(d))
	return commandResult{channel}, nil, func() {
		if restored, err := device.Restore(before, seed(c.cfg.HubID)); err == nil {
			restored.Jammed = d.Jammed
			*d = *restored
		}
	}
}

// unavailable returns the error of a hub that cannot act now, and nil if it can.
func (c *Controller) unavailable() *protocol.Error {
	switch {
	case c.faults.RadioDown:
		return reject(protocol.ErrorHubUnavailable, "the hub's radio is down")
	case c.faults.ClockUnknown:
		return reject(protocol.ErrorHubUnavailable, "the hub does not know the time yet")
	}
	return nil
}

// forgetOldCommands forgets expired command ids, at most once a minute, and returns their journal
// entries.
func (c *Controller) forgetOldCommands(now time.Time) (expired []string) {
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

// reject returns an error for a response.
func reject(kind, format string, args ...any) *protocol.Error {
	return &protocol.Error{Type: kind, Message: fmt.Sprintf(format, args...)}
}
