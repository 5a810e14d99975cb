package client

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// EventType is the type of an event. The service may send types that this package does not name:
// ignore those that you do not handle.
type EventType string

// The event types of the contract.
const (
	EventHubConnected      EventType = "hub.connected"
	EventHubDisconnected   EventType = "hub.disconnected"
	EventHubEventsSkipped  EventType = "hub.events_skipped"
	EventHubLogReset       EventType = "hub.log_reset"
	EventChannelObserved   EventType = "channel.observed"
	EventChannelDesired    EventType = "channel.desired"
	EventChannelStatus     EventType = "channel.status"
	EventDeviceAdded       EventType = "device.added"
	EventDeviceUpdated     EventType = "device.updated"
	EventDeviceJoinFailed  EventType = "device.join_failed"
	EventDeviceAvailable   EventType = "device.available"
	EventDeviceUnavailable EventType = "device.unavailable"
	EventDeviceForgotten   EventType = "device.forgotten"
	EventCredentialCreated EventType = "credential.created"
	EventCredentialApplied EventType = "credential.applied"
	EventCredentialRevoked EventType = "credential.revoked"
	EventRuleCreated       EventType = "rule.created"
	EventRuleUpdated       EventType = "rule.updated"
	EventRuleFired         EventType = "rule.fired"
	EventRuleDeleted       EventType = "rule.deleted"

	// eventCaughtUp is no event of a hub: it tells that older events have all been sent.
	eventCaughtUp EventType = "stream.caught_up"
	// eventState is a last reported state, and eventSnapshotEnd follows all of them.
	eventState       EventType = "snapshot.state"
	eventSnapshotEnd EventType = "snapshot.complete"
)

// Event is one event of a hub.
type Event struct {
	// Cursor is the event's position in the hub's log: opaque, and unique for each event. Store it
	// to resume after the event.
	Cursor string    `json:"cursor"`
	Type   EventType `json:"type"`
	HubID  string    `json:"hub_id"`
	// DeviceID is nil for events that do not concern a device.
	DeviceID *int64 `json:"device_id"`
	// Time is when the event happened, by the hub's clock; for hub.* events by the cloud's.
	Time time.Time `json:"time"`
	// ClockTrusted is false if the hub did not know the time yet; nil if the service does not say.
	ClockTrusted *bool `json:"clock_trusted"`
	// Data depends on the type: see the types below, and Decode.
	Data json.RawMessage `json:"data"`
}

// Decode decodes the event's data into `into`:
//
//	var observed client.ChannelObserved
//	err := event.Decode(&observed)
func (e Event) Decode(into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return fmt.Errorf("data of a %s event: %w: %w", e.Type, ErrProtocol, err)
	}
	return nil
}

// MarshalJSON encodes the event as the service does, with microseconds.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return json.Marshal(struct {
		Cursor   string    `json:"cursor"`
		Type     EventType `json:"type"`
		HubID    string    `json:"hub_id"`
		DeviceID *int64    `json:"device_id"`
		Time     string    `json:"time"`
		plain
	}{
		e.Cursor, e.Type, e.HubID, e.DeviceID, e.Time.UTC().Format("2006-01-02T15:04:05.000000Z"),
		plain(e),
	})
}

// The data of events, by type. Events that are not listed have an empty object.
type (
	// HubDisconnected is the data of hub.disconnected. Reason is the broker's; nil if there was
	// none.
	HubDisconnected struct {
		Reason *string `json:"reason"`
	}
	// EventsSkipped is the data of hub.events_skipped: the hub's numbers of the first and the last
	// missing event. Reason is why the event was malformed, such as time; "" if the hub no longer
	// has the events.
	EventsSkipped struct {
		From   int64  `json:"from"`
		To     int64  `json:"to"`
		Reason string `json:"reason,omitempty"`
	}
	// LogReset is the data of hub.log_reset, the first event of a log that has begun anew. Reason
	// is factory_reset if the hub was reset, and restored if the service was restored from a
	// backup; further reasons may be added.
	LogReset struct {
		Reason string `json:"reason"`
	}
	// ChannelObserved is the data of channel.observed: what the device reported.
	ChannelObserved = ChannelValue
	// ChannelDesired is the data of channel.desired: what a command asked for.
	ChannelDesired = ChannelValue
	// ChannelValue is a value of a channel of the event's device.
	ChannelValue struct {
		Key      string `json:"key"`
		Endpoint int    `json:"endpoint"`
		Value    Value  `json:"value"`
	}
	// StatusChanged is the data of channel.status: the status changed without a report of the
	// device, as when the hub abandons a command.
	StatusChanged struct {
		Key      string        `json:"key"`
		Endpoint int           `json:"endpoint"`
		Status   ChannelStatus `json:"status"`
	}
	// DeviceNamed is the data of device.added and device.forgotten.
	DeviceNamed struct {
		Name string `json:"name"`
		// Secure is false in device.added if the hub rejects commands to the device because it
		// joined without security; nil if the hub does not say so.
		Secure *bool `json:"secure"`
	}
	// DeviceJoinFailed is the data of device.join_failed. Reason is, for example, "security".
	DeviceJoinFailed struct {
		Reason string `json:"reason"`
	}
	// DeviceUpdated is the data of device.updated. RemovedChannels holds JSON whose form the
	// contract does not specify.
	DeviceUpdated struct {
		Name            string            `json:"name"`
		RemovedChannels []json.RawMessage `json:"removed_channels"`
	}
	// CredentialCreated is the data of credential.created.
	CredentialCreated struct {
		Slot  int    `json:"slot"`
		Label string `json:"label"`
	}
	// CredentialApplied is the data of credential.applied. State is, for example, "active".
	CredentialApplied struct {
		State string `json:"state"`
	}
	// Rule is the data of rule.created and rule.updated.
	Rule struct {
		Name    string `json:"name"`
		Enabled bool   `json:"enabled"`
	}
)

// EventPage is one page of a hub's events.
type EventPage struct {
	Data []Event `json:"data"`
	// NextCursor is the cursor to continue from, even if there are no events.
	NextCursor string `json:"next_cursor"`
	// HasMore reports that more events are stored.
	HasMore bool `json:"has_more"`
	// Lag is how far NextCursor is behind.
	Lag Lag `json:"-"`
}

// EventQuery selects a page of a hub's events.
type EventQuery struct {
	// After is the cursor after which to read; "" starts at the oldest stored event.
	After string
	// Since begins with the events that the service stored at that time or later, and Last with the
	// newest events, up to 500. Only one of After, Since and Last may be set.
	Since time.Time
	Last  int
	// Limit is the most events on the page, up to 500. Defaults to 100, or to Last.
	Limit int
	// Wait is how long the service may wait for an event if there is none, in whole seconds up to a
	// minute.
	Wait time.Duration
	// Reader is a name of 1 to 64 printable characters for this reader. Client.Readers and the
	// portal then show how far it has read. Defaults to none.
	Reader string
}

// EventsPage reads one page of a hub's events. Scope events:read. Returns ErrNotFound,
// ErrInvalidRequest for a malformed cursor, and ErrCursorExpired. Client.Events reads, waits and
// resumes by itself.
func (c *Client) EventsPage(
	ctx context.Context, hubID string, query EventQuery,
) (EventPage, error) {
	var p EventPage
	header, err := c.do(ctx, hubSource(hubID).pageCall(query), &p)
	p.Lag = lagOf(header)
	return p, err
}
