package domain

import "time"

// ReportedState is what a channel of a device last reported, with its device and its hub.
type ReportedState struct {
	HubID  HubID
	SiteID string
	// HubStatus and HubSince are the hub's connection.
	HubStatus HubStatus
	HubSince  time.Time

	DeviceID int64
	// Name is nil if neither the hub nor the API has named the device.
	Name                *string
	Manufacturer, Model string
	Room                *string
	// AvailableSince is when the device became available or unavailable; nil if it is not known.
	AvailableSince *time.Time

	Channel Channel
	// ChangedAt is when the channel first reported its value; nil if it is not known.
	ChangedAt *time.Time
	// Basis is `event` or `read`.
	Basis string
	// Certain reports whether everything that the hub reported of the channel is known.
	Certain bool
}

// StateFilter selects reported states. Nil selects all.
type StateFilter struct {
	SiteID *string
	HubID  *HubID
	Key    *string
	// Value selects channels whose value is the boolean.
	Value     *bool
	Status    *ChannelStatus
	Available *bool
	// ObservedBefore selects channels that have reported, but not at that time or later.
	ObservedBefore *time.Time
}

// StatePosition is the place of a channel in lists of reported states, which are ordered by hub,
// device, key and endpoint. The zero value is before all.
type StatePosition struct {
	HubID    HubID
	DeviceID int64
	Key      string
	Endpoint int64
}
