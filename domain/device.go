package domain

import "encoding/json"

// Device is a device as its hub tells it, live. The service lays the name and room that were set
// through the API over it.
type Device struct {
	ID           int64
	Name         string
	Manufacturer string
	Model        string
	// Channels are those that the device reported supporting; never nil.
	Channels []Channel
}

// Channel is a channel of a device in a hub's answer. Which fields are set depends on the request:
// a list of devices has no values and no status, and the answer to a command has no abilities
// (Readable, Writable, Capabilities).
//
// The JSON form is that of remembered answers to commands; fields that are not set are absent.
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

	// Value is what the device reported last; nil is null. ObservedAt is its time in TimeLayout.
	Value      json.RawMessage `json:"value,omitempty"`
	ObservedAt *string         `json:"observed_at,omitempty"`
	// Desired is the value of the last command; nil is null. DesiredAt is its time in TimeLayout.
	Desired   json.RawMessage `json:"desired,omitempty"`
	DesiredAt *string         `json:"desired_at,omitempty"`
	Status    ChannelStatus   `json:"status"`
}

// Command asks that a channel take a value.
type Command struct {
	OrgID    string
	HubID    HubID
	DeviceID int64
	Key      string
	Endpoint int64
	// Value is canonical, as CheckCommandValue gives it.
	Value json.RawMessage
	// IdempotencyKey is the caller's, as CheckIdempotencyKey takes it; empty when there is none.
	IdempotencyKey string
}
