package live

import (
	"bytes"
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// Event is one event of a hub's log.
type Event struct {
	Cursor       string          `json:"cursor"`
	Type         string          `json:"type"`
	HubID        domain.HubID    `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         time.Time       `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// channelEvent is the data of channel.observed and channel.desired.
type channelEvent struct {
	Key      string          `json:"key"`
	Endpoint int64           `json:"endpoint"`
	Value    json.RawMessage `json:"value"`
}

// decode reads an envelope. One that cannot be read, such as by a time beyond what Go reads, is
// left out by whoever shows it.
func decode(e domain.EncodedEvent) (event Event, ok bool) {
	return event, json.Unmarshal(e.Envelope, &event) == nil
}

// linkType is what the type of the cloud's own events looks like in an envelope, which has the type
// right behind the cursor.
var linkType = []byte(`","type":"hub.`)

// isLink says whether an envelope is of an event that the cloud itself wrote, without decoding all
// of it.
func isLink(envelope []byte) bool {
	return bytes.Contains(envelope[:min(len(envelope), 80)], linkType)
}
