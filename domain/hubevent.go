package domain

import "encoding/json"

// The event types that the cloud itself writes into a hub's log. A hub may not send any type that
// starts with `hub.`.
const (
	EventHubConnected     = "hub.connected"
	EventHubDisconnected  = "hub.disconnected"
	EventHubEventsSkipped = "hub.events_skipped"
	EventDeviceForgotten  = "device.forgotten"
)

// HubEvent is one event of a hub as it is stored: the envelope of the contract without its cursor,
// which is made from where it is stored. The fields are written in this order, on one line, with
// Time in TimeLayout, so that what a reader gets is the stored text with the cursor put in front.
type HubEvent struct {
	Type         string          `json:"type"`
	HubID        HubID           `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         string          `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// EncodedEvent is one event of a hub's log as its readers get it. It is encoded once and shared by
// all of them: nobody may change its bytes.
type EncodedEvent struct {
	// Seq is the event's sequence number in the log. It never leaves the service.
	Seq uint64
	// Frame is the whole Server-Sent Events message: `id:`, `event:`, `data:` and the empty line
	// that ends it.
	Frame []byte
	// Envelope is the contract's envelope as one JSON line: the part of Frame after `data: `.
	Envelope []byte
	// Cursor is the event's cursor: the part of Frame after `id: `.
	Cursor string
}

// EventPage is what a read of a hub's log answers.
type EventPage struct {
	Events []EncodedEvent
	// Next is the cursor to go on from. It is never empty.
	Next string
	// HasMore says that more events are there already.
	HasMore bool
}
