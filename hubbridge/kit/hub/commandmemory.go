package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"hubcloud/hubbridge/protocol"
)

const (
	// commandMemory is how long the answer to a command id is remembered.
	commandMemory = 24 * time.Hour
	// maxCommandID is the length of the longest command id, in bytes.
	maxCommandID = 255
	// entryCommand begins the names of journal entries with a rememberedAnswer; the command id
	// follows.
	entryCommand = "command/"
)

// rememberedAnswer is the first answer to a command id, with exactly one of Result and Error.
type rememberedAnswer struct {
	At     time.Time       `json:"at"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *protocol.Error `json:"error,omitempty"`
}

func (a rememberedAnswer) expired(now time.Time) bool { return now.Sub(a.At) >= commandMemory }

// outcome returns the answer as a result or an error.
func (a rememberedAnswer) outcome() (any, error) {
	if a.Error != nil {
		return nil, &Error{Type: a.Error.Type, Message: a.Error.Message}
	}
	return a.Result, nil
}

type commandParams struct {
	CommandID string          `json:"command_id"`
	DeviceID  *int64          `json:"device_id"`
	Key       string          `json:"key"`
	Endpoint  int             `json:"endpoint"`
	Value     json.RawMessage `json:"value"`
}

// loadCommands restores the remembered answers from the journal.
func (e *Engine) loadCommands() error {
	for name, raw := range e.journal.entriesWith(entryCommand) {
		var a rememberedAnswer
		if err := json.Unmarshal(raw, &a); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		e.commands[strings.TrimPrefix(name, entryCommand)] = a
	}
	return nil
}

// command runs a command, or returns the first answer again if its id is remembered.
func (e *Engine) command(
	ctx context.Context, handler Handler, params commandParams, now time.Time,
) (any, error) {
	switch {
	case params.CommandID == "" || len(params.CommandID) > maxCommandID:
		return nil, Errorf(
			ErrorInvalidRequest, "command_id must have 1 to %d characters", maxCommandID,
		)
	case params.DeviceID == nil:
		return nil, errNoDeviceID
	}
	first, known, err := e.beginCommand(ctx, params.CommandID, now)
	if err != nil {
		return nil, err
	}
	if known {
		return first.outcome()
	}
	defer e.endCommand(params.CommandID)

	var answer *rememberedAnswer // once Accept has stored it
	var failed error             // of Accept
	cmd := &Command{
		ID: params.CommandID, DeviceID: *params.DeviceID, Key: params.Key,
		Endpoint: params.Endpoint, Value: params.Value,
	}
	cmd.accept = func(channel Channel, change Change) error {
		if answer != nil || failed != nil {
			return errors.New("the command is answered already")
		}
		a := rememberedAnswer{At: now}
		a.Result, failed = json.Marshal(commandResult{commandedChannel{head(channel), state(channel)}})
		if failed != nil {
			return failed
		}
		desired := channelValue{cmd.Key, cmd.Endpoint, channel.Desired}
		change.Events = append(
			[]Event{{Type: EventDesired, DeviceID: cmd.DeviceID, Data: desired}}, change.Events...,
		)
		if failed = e.remember(cmd.ID, a, change, now); failed == nil {
			answer = &a
		}
		return failed
	}
	switch err := handler.Command(ctx, cmd); {
	case answer != nil:
		return answer.outcome()
	case failed != nil:
		return nil, failed
	case err == nil:
		return nil, errors.New("the handler neither accepted nor rejected the command")
	default:
		rejection := e.protocolError(err, protocol.MethodChannelsCommand)
		if rejection.Type != ErrorHubUnavailable {
			rejected := rememberedAnswer{At: now, Error: rejection}
			if err := e.remember(cmd.ID, rejected, Change{}, now); err != nil {
				return nil, err
			}
		}
		return nil, &Error{Type: rejection.Type, Message: rejection.Message}
	}
}

// beginCommand returns the first answer to a command id, if one is remembered. Otherwise the caller
// runs the command and calls endCommand. A command with the same id that is running ends first.
func (e *Engine) beginCommand(
	ctx context.Context, id string, now time.Time,
) (first rememberedAnswer, known bool, err error) {
	for {
		e.mu.Lock()
		first, known = e.commands[id]
		ended := e.running[id]
		run := ended == nil && (!known || first.expired(now))
		if run {
			e.running[id] = make(chan struct{})
		}
		e.mu.Unlock()
		switch {
		case run:
			return rememberedAnswer{}, false, nil
		case ended == nil:
			return first, true, nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return first, false, context.Cause(ctx)
		}
	}
}

func (e *Engine) endCommand(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.running[id])
	delete(e.running, id)
}

// remember stores the answer to a command id together with change. Its error is an *Error.
func (e *Engine) remember(id string, a rememberedAnswer, change Change, now time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	change.Delete = append(e.forgetOldCommands(now), change.Delete...)
	if e.cfg.Dir != "" { // otherwise no restart reads the entry
		set := map[string]json.RawMessage{entryCommand + id: mustJSON(a)}
		maps.Copy(set, change.Set)
		change.Set = set
	}
	if _, err := e.commit(now, change); err != nil {
		return Errorf(errorStorage, "the hub cannot store the command: %v", err)
	}
	e.commands[id] = a
	return nil
}

// forgetOldCommands forgets expired command ids, at most once a minute, and returns their journal
// entries.
func (e *Engine) forgetOldCommands(now time.Time) (expired []string) {
	if now.Before(e.nextSweep) {
		return nil
	}
	e.nextSweep = now.Add(time.Minute)
	for id, a := range e.commands {
		if a.expired(now) {
			delete(e.commands, id)
			expired = append(expired, entryCommand+id)
		}
	}
	return expired
}
