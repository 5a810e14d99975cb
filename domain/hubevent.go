package domain

import "encoding/json"

// Event types that the service handles. Types that begin with `hub.` are written by the cloud only;
// a hub may not send them.
const (
	EventHubConnected     = "hub.connected"
	EventHubDisconnected  = "hub.disconnected"
	EventHubEventsSkipped = "hub.events_skipped"
	// EventHubLogReset is the first event of a new epoch, unless the epoch began because the hub
	// was added. Its data has a LogResetReason.
	EventHubLogReset     = "hub.log_reset"
	EventDeviceForgotten = "device.forgotten"
	// EventFeedGap stands in the feed of an organization for events of a hub that are gone. It is
	// in no hub's log.
	EventFeedGap = "feed.gap"
)

// LogResetReason is why a hub's log has a new epoch.
type LogResetReason string

// The reasons of hub.log_reset.
const (
	// LogResetFactory: the hub was reset to factory state, and numbers its events anew.
	LogResetFactory LogResetReason = "factory_reset"
	// LogResetRestored: the service was restored from a backup. What was stored after the backup is
	// gone, unless the hub still had it.
	LogResetRestored LogResetReason = "restored"
)

// HubEvent is the stored form of an event in a hub's log: the contract's envelope without the
// cursor, which depends on where the event is stored. It is written in this field order, on one
// line, with Time in TimeLayout. Readers get the stored text with the cursor inserted at the front.
type HubEvent struct {
	Type         string          `json:"type"`
	HubID        HubID           `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// EncodedEvent is an event of a hub's log in the form that readers get. It is encoded once and
// shared by all readers, so its bytes must not be changed.
type EncodedEvent struct {
	// Seq is the event's sequence in the hub's stream. It is never shown to clients.
	Seq uint64
	// Number counts the events of the hub's log, from 1. It is never shown to clients.
	Number uint64
	// StoredNanos is when the event was stored, in nanoseconds since 1970.
	StoredNanos int64
	// Frame is the whole Server-Sent Events message: `id:`, `event:`, `data:` and the empty line
	// that ends it.
	Frame []byte
	// Envelope is the contract's envelope as one JSON line: the part of Frame after `data: `.
	Envelope []byte
	// Cursor is the event's cursor: the part of Frame after `id: `.
	Cursor string
}

// EventPage is a page of a hub's log, or of an organization's feed.
type EventPage struct {
	Events []EncodedEvent
	// Next is the cursor to continue from; never empty.
	Next string
	// HasMore reports whether more events are stored already.
	HasMore bool
	// Lag is how far Next is behind the end.
	Lag FeedLag
	// Scanned is how many events were looked at for the page, among them the ones that a filter left
	// out; 0 for a log of one hub.
	Scanned int
}
