package domain

import "encoding/json"

// Device is a device as its hub reports it on request. The service replaces Name and adds the room
// where they were set through the API.
type Device struct {
	ID           int64
	Name         string
	Manufacturer string
	Model        string
	// WakesAt is when a device that sleeps is expected to wake, in TimeLayout; nil for others.
	WakesAt *string
	// Channels are the channels that the device supports; never nil.
	Channels []Channel
	// LastEvent is the hub's number of the last event that the answer takes into account; nil if
	// the hub does not tell it.
	LastEvent *uint64
}

// Channel is a channel of a device in a hub's answer. A list of devices has no values and no
// status; the answer to a command has no Readable, Writable and Capabilities.
//
// Its JSON is stored with the remembered answers to commands. Fields that are not set are absent.
type Channel struct {
	// Key and Endpoint name the channel within its device.
	Key      string `json:"key"`
	Endpoint int64  `json:"endpoint"`
	Kind     string `json:"kind"`
	// Unit is nil where the contract has null.
	Unit *string `json:"unit"`

	Readable bool `json:"readable,omitempty"`
	Writable bool `json:"writable,omitempty"`
	// Capabilities is a JSON object; empty by default.
	Capabilities json.RawMessage `json:"capabilities,omitempty"`

	// Available is false while the hub cannot reach the device.
	Available bool `json:"available"`

	// Value is the last reported value; nil is null. ObservedAt is its time in TimeLayout.
	Value      json.RawMessage `json:"value,omitempty"`
	ObservedAt *string         `json:"observed_at,omitempty"`
	// Desired is the value of the last command; nil is null. DesiredAt is its time in TimeLayout.
	Desired   json.RawMessage `json:"desired,omitempty"`
	DesiredAt *string         `json:"desired_at,omitempty"`
	Status    ChannelStatus   `json:"status"`
}
