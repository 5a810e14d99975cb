package portal

import (
	"bytes"
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// logEvent is a decoded event of a hub's log.
type logEvent struct {
	Cursor       string          `json:"cursor"`
	Type         string          `json:"type"`
	HubID        domain.HubID    `json:"hub_id"`
	DeviceID     *int64          `json:"device_id"`
	Time         time.Time       `json:"time"`
	ClockTrusted *bool           `json:"clock_trusted"`
	Data         json.RawMessage `json:"data"`
}

// isOf reports whether the event is of a device.
func (e logEvent) isOf(device int64) bool { return e.DeviceID != nil && *e.DeviceID == device }

// channelEvent is the data of channel.observed, channel.desired and channel.status: the first two
// have a value, the last one a status.
type channelEvent struct {
	Key      string               `json:"key"`
	Endpoint int64                `json:"endpoint"`
	Value    json.RawMessage      `json:"value"`
	Status   domain.ChannelStatus `json:"status"`
}

// decode decodes an event's envelope. ok is false if the envelope cannot be decoded, for example
// because of a time that Go cannot represent. Pages leave such events out.
func decode(e domain.EncodedEvent) (event logEvent, ok bool) {
	err := json.Unmarshal(e.Envelope, &event)
	return event, err == nil
}

// hasType reports whether the type of an envelope's event begins with a text. It does not decode
// the envelope: the type follows the cursor at the beginning.
func hasType(envelope []byte, prefix string) bool {
	const before = `","type":"`
	_, rest, ok := bytes.Cut(envelope[:min(len(envelope), 100)], []byte(before))
	return ok && bytes.HasPrefix(rest, []byte(prefix))
}
