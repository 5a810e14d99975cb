package domain

import (
	"encoding/json"
	"time"
)

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
	// AvailableLogged is when the cloud learned of it.
	AvailableLogged time.Time

	Channel Channel
	// ChangedAt is when the channel first reported its value; nil if it is not known.
	ChangedAt *time.Time
	// Logged has the cloud's times of what Channel and ChangedAt have by the hub's clock.
	Logged LoggedTimes
	// Standing are the alarms that stand if the channel reports alarms, oldest first.
	Standing []StandingAlarm
	// Basis is `event` or `read`.
	Basis string
	// Certain reports whether everything that the hub reported of the channel is known.
	Certain bool
}

// StandingAlarm is an alarm that a channel has reported, and whose end it has not reported.
type StandingAlarm struct {
	// Value is the last report of the alarm.
	Value json.RawMessage `json:"value"`
	// ObservedAt is when the alarm was reported last, and ChangedAt when it was reported first, by
	// the hub's clock.
	ObservedAt time.Time `json:"observed_at"`
	ChangedAt  time.Time `json:"changed_at"`
	// Logged are the times of the log that belong to ObservedAt and ChangedAt.
	Logged LoggedTimes `json:"logged"`
}

// LoggedTimes are when the hub's log got what a channel reported. They are the cloud's, and grow
// from record to record of the log: unlike the times of hubs' clocks they are in the order in which
// things were reported. They are zero for what is not known.
type LoggedTimes struct {
	// Observed is when the value was last reported, Changed when a report first had the
	// present value, and Desired when the last command was sent.
	Observed time.Time `json:"observed,omitzero"`
	Changed  time.Time `json:"changed,omitzero"`
	Desired  time.Time `json:"desired,omitzero"`
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
	// ObservedBefore selects channels that have reported, but not at that time or later, by the
	// cloud's clock.
	ObservedBefore *time.Time
}

// SelectsAllOfHubs reports whether the filter selects all channels of the hubs that it selects.
func (f StateFilter) SelectsAllOfHubs() bool {
	return f == StateFilter{SiteID: f.SiteID, HubID: f.HubID}
}

// StatesPage is a page of a list of reported states. It may have no states although HasMore is set.
type StatesPage struct {
	Page[ReportedState]
	// Next is where the next page begins if HasMore is set.
	Next StatePosition
}

// StatePosition is the place of a channel in lists of reported states, which are ordered by hub,
// device, key and endpoint. The zero value is before all.
type StatePosition struct {
	HubID    HubID
	DeviceID int64
	Key      string
	Endpoint int64
}

// Position returns the place of the state in lists.
func (s ReportedState) Position() StatePosition {
	return StatePosition{
		HubID: s.HubID, DeviceID: s.DeviceID, Key: s.Channel.Key, Endpoint: s.Channel.Endpoint,
	}
}

// FoundDevice is a device that a search found, with its hub and site. Texts are "" for unknown.
type FoundDevice struct {
	HubID                           HubID
	HubName, Site                   string
	DeviceID                        int64
	Name, Room, Manufacturer, Model string
	// Key, Unit and Value are what was last reported of the device's main channel, and ChangedAt when
	// its value was first reported; empty if that is not known.
	Key, Unit string
	Value     json.RawMessage
	ChangedAt *time.Time
}
