package hub

import (
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// Device is a device of a hub.
type Device struct {
	// ID is unique within the hub. The id of a device that has left must not be used again.
	ID int64
	// Name is what the hub calls the device; the cloud shows it unless another was set there.
	Name         string
	Manufacturer string
	Model        string
	// WakesAt is when a device that sleeps is expected to wake next; zero for one that does not
	// sleep. A command to it is accepted, and waits until then.
	WakesAt time.Time
	// Channels are the channels that the device supports.
	Channels []Channel
}

// Channel is a channel of a device: a value that it reports and, if it is writable, accepts in
// commands.
type Channel struct {
	// Key is one of the channel keys of the protocol, such as "lock".
	Key string
	// Endpoint is 0 unless the device has several channels of the key.
	Endpoint int
	// Unit is the unit of Value; "" for none.
	Unit string
	// Readable and Writable tell what the channel can do.
	Readable, Writable bool
	// Capabilities is encoded as a JSON object; nil is an empty one. Setpoints have "min" and
	// "max". The "resolution" of a number is the step between those that the device can take: a
	// report that differs from a command by at most half of it is what was asked.
	Capabilities any
	// Available is false while the hub cannot reach the device.
	Available bool
	// ChannelState has the values, which are encoded as JSON, and their status. Its methods are the
	// transitions of the protocol.
	domain.ChannelState
}

// Command is a command of the cloud to set a channel.
type Command struct {
	// ID is the command id. The hub has not run it within 24 hours.
	ID       string
	DeviceID int64
	// Key and Endpoint name the channel.
	Key      string
	Endpoint int
	// Value is the value in JSON; nil if it is absent.
	Value json.RawMessage

	accept func(Channel, Change) error
}

// Accept answers the command with the channel, which must be pending. It stores the answer, a
// channel.desired event with the channel's desired value, and change, all or none. The handler must
// run the command only if Accept returns nil, and must return its error. A handler that emits the
// outcome from another goroutine must do so after Accept has returned. Accept may be called once.
func (c *Command) Accept(channel Channel, change Change) error { return c.accept(channel, change) }
