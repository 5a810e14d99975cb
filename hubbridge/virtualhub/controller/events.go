package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/virtualhub/journal"
)

// EventObserved is the type of an event with a channel's new value. Emit accepts any type.
const EventObserved = "channel.observed"

// Types of the other events that the hub emits by itself.
const (
	eventDesired     = "channel.desired"
	eventAdded       = "device.added"
	eventUpdated     = "device.updated"
	eventForgotten   = "device.forgotten"
	eventAvailable   = "device.available"
	eventUnavailable = "device.unavailable"
)

// maxEmitted bounds the bytes of an event. It is above the protocol's limit, to test the cloud, but
// leaves an event within one message: the broker would drop a larger message each time it is sent.
const maxEmitted = 200 << 10

// Event is an event for Emit.
type Event struct {
	// Type is not validated.
	Type string
	// DeviceID is the device of the event; 0 for none.
	DeviceID int64
	// Data is encoded as JSON. Nil is an empty object.
	Data any
	// Raw, if set, is the whole event without its number, in place of the other fields. It must be
	// a JSON object. It can express malformed events.
	Raw json.RawMessage
}

// encodedEvent is the JSON of an event in a message, without its number.
type encodedEvent struct {
	Type         string `json:"type"`
	DeviceID     *int64 `json:"device_id"`
	Time         string `json:"time"`
	ClockTrusted bool   `json:"clock_trusted"`
	Data         any    `json:"data"`
}

// bootTime is the clock's time at boot while the hub does not know the time.
var bootTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// event encodes an event that happened at now. Device 0 stands for none.
func (c *Controller) event(kind string, deviceID int64, now time.Time, data any) json.RawMessage {
	e := encodedEvent{Type: kind, Time: domain.FormatTime(now), ClockTrusted: true, Data: data}
	if c.faults.ClockUnknown {
		e.Time, e.ClockTrusted = domain.FormatTime(bootTime.Add(now.Sub(c.booted))), false
	}
	if deviceID != 0 {
		e.DeviceID = &deviceID
	}
	if data == nil {
		e.Data = struct{}{}
	}
	return mustJSON(e)
}

// Emit numbers and stores all of events, or none if it returns an error. It returns the number of
// the last event.
func (c *Controller) Emit(now time.Time, events []Event) (last uint64, err error) {
	if len(events) == 0 {
		return 0, errors.New("events: must not be empty")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	encoded := make([]json.RawMessage, len(events))
	for i, e := range events {
		if encoded[i], err = c.encode(now, e); err != nil {
			return 0, fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	last, err = c.journal.Commit(journal.Change{Events: encoded})
	if err != nil {
		return 0, err
	}
	c.notify()
	return last, nil
}

func (c *Controller) encode(now time.Time, e Event) (json.RawMessage, error) {
	if e.Raw == nil {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return nil, err
		}
		if e.Data == nil {
			data = []byte("{}")
		}
		if len(data) > maxEmitted {
			return nil, fmt.Errorf(
				"data: has %d bytes, must have at most %d", len(data), maxEmitted,
			)
		}
		return c.event(e.Type, e.DeviceID, now, json.RawMessage(data)), nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(e.Raw, &object) != nil || object == nil || e.Raw[0] != '{' {
		return nil, errors.New("raw: must be a JSON object without leading space")
	}
	if len(e.Raw) > maxEmitted {
		return nil, fmt.Errorf("raw: has %d bytes, must have at most %d", len(e.Raw), maxEmitted)
	}
	return e.Raw, nil
}
