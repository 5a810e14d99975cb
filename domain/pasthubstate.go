package domain

import "time"

// PastHubState is what the devices of a hub had last reported at an instant.
type PastHubState struct {
	// At is the instant.
	At time.Time
	// KnownFrom is the first instant at which everything that the hub had reported is known; nil if
	// there is none.
	KnownFrom *time.Time
	// Certain reports whether everything that the hub had reported at the instant is known.
	Certain bool
	// Channels are ordered by device, key and endpoint.
	Channels []PastChannel
}

// PastChannel is what a channel of a device had last reported at an instant.
type PastChannel struct {
	DeviceID int64
	// Name is what the hub reported; nil if it has not named the device.
	Name                *string
	Manufacturer, Model string
	// AvailableSince is when the device became available or unavailable; nil if it is not known.
	AvailableSince *time.Time

	Channel Channel
	// ChangedAt is when the channel first reported its value; nil if it is not known.
	ChangedAt *time.Time
	// Basis is `event` or `read`.
	Basis string
	// Certain reports whether everything that the hub had reported of the device is known.
	Certain bool
}
