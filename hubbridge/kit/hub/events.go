package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
)

// Types of events. Any other type is stored and delivered by the cloud as it is, except for those
// that begin with "hub.", which are the cloud's own.
const (
	// EventObserved: a device reported a value. Data: key, endpoint, value.
	EventObserved = "channel.observed"
	// EventDesired: a command asked for a value. Data: key, endpoint, value. Command.Accept emits
	// it.
	EventDesired = "channel.desired"
	// EventStatus: the status of a channel changed without a report. Data: key, endpoint, status.
	EventStatus = "channel.status"
	// EventAdded: a device joined. Data: name, and secure, which is false if the hub rejects
	// commands to it because it joined without security.
	EventAdded = "device.added"
	// EventJoinFailed: a device tried to join and failed. Data: reason.
	EventJoinFailed = "device.join_failed"
	// EventUpdated: the data of a device changed, or it has more channels than before, as while it
	// is interviewed. Data: name, removed_channels.
	EventUpdated = "device.updated"
	// EventForgotten: a device was removed from the hub. Data: name.
	EventForgotten = "device.forgotten"
	// EventAvailable: the radio reaches the device again. No data.
	EventAvailable = "device.available"
	// EventUnavailable: the radio can no longer reach the device. No data.
	EventUnavailable = "device.unavailable"
	// EventCredentialCreated: a lock was given a code in a slot that had none. Data: slot, label.
	EventCredentialCreated = "credential.created"
	// EventCredentialApplied: a code is set, or changed. Data: state, and slot.
	EventCredentialApplied = "credential.applied"
	// EventCredentialRevoked: a code was removed. Data: slot.
	EventCredentialRevoked = "credential.revoked"
)

// maxEmitted bounds the bytes of an event. It is above the protocol's limit, to test the cloud, but
// leaves an event within one message: the broker would drop a larger message each time it is sent.
const maxEmitted = 200 << 10

// Event is an event to emit.
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

// Observed returns the event of a device that reported a value of a channel.
func Observed(deviceID int64, key string, endpoint int, value any) Event {
	return Event{
		Type: EventObserved, DeviceID: deviceID, Data: channelValue{key, endpoint, value},
	}
}

// StatusChanged returns the event of a channel whose status changed without a report of the device:
// a command that was abandoned is failed.
func StatusChanged(
	deviceID int64, key string, endpoint int, status domain.ChannelStatus,
) Event {
	return Event{
		Type: EventStatus, DeviceID: deviceID, Data: channelStatus{key, endpoint, status},
	}
}

// encodedEvent is the JSON of an event in a message, without its number.
type encodedEvent struct {
	Type         string          `json:"type"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted bool            `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// encode encodes an event that happened at now. The caller holds the lock.
func (e *Engine) encode(now time.Time, event Event) (json.RawMessage, error) {
	if event.Raw != nil {
		return event.Raw, checkRaw(event.Raw)
	}
	encoded := encodedEvent{
		Type: event.Type, Time: domain.FormatTime(now.Add(e.clockOffset)),
		ClockTrusted: !e.clockUnknown, Data: json.RawMessage("{}"),
	}
	if event.DeviceID != 0 {
		encoded.DeviceID = &event.DeviceID
	}
	if event.Data != nil {
		data, err := json.Marshal(event.Data)
		if err != nil {
			return nil, err
		}
		encoded.Data = data
	}
	if len(encoded.Data) > maxEmitted {
		return nil, fmt.Errorf(
			"data: has %d bytes, must have at most %d", len(encoded.Data), maxEmitted,
		)
	}
	return mustJSON(encoded), nil
}

func checkRaw(raw json.RawMessage) error {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil || raw[0] != '{' {
		return errors.New("raw: must be a JSON object without leading space")
	}
	if len(raw) > maxEmitted {
		return fmt.Errorf("raw: has %d bytes, must have at most %d", len(raw), maxEmitted)
	}
	return nil
}
