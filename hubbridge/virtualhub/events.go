package virtualhub

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/virtualhub/journal"
)

// Event types that a hub's own doings have. Emit takes any type.
const (
	eventObserved    = "channel.observed"
	eventDesired     = "channel.desired"
	eventAdded       = "device.added"
	eventUpdated     = "device.updated"
	eventForgotten   = "device.forgotten"
	eventAvailable   = "device.available"
	eventUnavailable = "device.unavailable"
)

// maxEmitted keeps an event, which Emit lets be larger than the link allows, within one message: a
// message over the link's limit would be dropped whole and sent for ever.
const maxEmitted = 200 << 10

// Event is an event for Emit.
type Event struct {
	// Type is not checked.
	Type string
	// DeviceID is the device that it is about; 0: none.
	DeviceID int64
	// Data is encoded as JSON. Nil: an empty object.
	Data any
	// Raw is used in place of all of the above: the event as it stands in its message, but without
	// a number. It must be a JSON object; malformed events are made with it.
	Raw json.RawMessage
}

// wireEvent is an event as it stands in a message, without its number.
type wireEvent struct {
	Type         string `json:"type"`
	DeviceID     *int64 `json:"device_id"`
	Time         string `json:"time"`
	ClockTrusted bool   `json:"clock_trusted"`
	Data         any    `json:"data"`
}

// bootTime is where the clock of a hub stands that was switched on and does not know the time.
var bootTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// event encodes an event that happens at now. Device 0 is none.
func (c *controller) event(kind string, deviceID int64, now time.Time, data any) json.RawMessage {
	e := wireEvent{Type: kind, Time: domain.FormatTime(now), ClockTrusted: true, Data: data}
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

// emit numbers events, all or none, and returns the number of the last one.
func (c *controller) emit(now time.Time, events []Event) (last uint64, err error) {
	if len(events) == 0 {
		return 0, errors.New("no events to emit")
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
	c.stir()
	return last, nil
}

func (c *controller) encode(now time.Time, e Event) (json.RawMessage, error) {
	if e.Raw == nil {
		data, err := json.Marshal(e.Data)
		if err != nil {
			return nil, err
		}
		if e.Data == nil {
			data = []byte("{}")
		}
		if len(data) > maxEmitted {
			return nil, fmt.Errorf("%d bytes of data are more than %d", len(data), maxEmitted)
		}
		return c.event(e.Type, e.DeviceID, now, json.RawMessage(data)), nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(e.Raw, &object) != nil || object == nil || e.Raw[0] != '{' {
		return nil, errors.New("raw is no JSON object, with nothing before it")
	}
	if len(e.Raw) > maxEmitted {
		return nil, fmt.Errorf("%d bytes are more than %d", len(e.Raw), maxEmitted)
	}
	return e.Raw, nil
}
