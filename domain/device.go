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

// Channel is a channel of a device as its hub tells it. Which fields are set depends on what was
// asked: a list of devices has no values and no status, the answer to a command has no abilities
// (Readable, Writable, Capabilities).
type Channel struct {
	// Key and Endpoint name the channel within its device.
	Key      string
	Endpoint int64
	Kind     string
	// Unit is nil where the contract has null.
	Unit *string

	Readable bool
	Writable bool
	// Capabilities is a JSON object; empty by default.
	Capabilities json.RawMessage

	// Available is false while the hub cannot reach the device.
	Available bool

	// Value is what the device last reported, Desired what the last command asked for; nil is null.
	Value   json.RawMessage
	Desired json.RawMessage
	// ObservedAt and DesiredAt are the times of those, in TimeLayout; nil is null.
	ObservedAt *string
	DesiredAt  *string
	Status     ChannelStatus
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
