package tap

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"hubcloud/domain"
)

// Format is a JSON format of records. A record is one line.
type Format string

const (
	// NDJSON is the API's event envelope with three more fields: organization_id (null if it is not
	// known), sequence and stored_at (both null for records that are not in the hub's log).
	NDJSON Format = "ndjson"
	// CloudEvents is CloudEvents 1.0 in structured JSON. Its data is the API's event envelope.
	CloudEvents Format = "cloudevents"
)

// ContentType returns the media type of a record.
func (f Format) ContentType() string {
	if f == CloudEvents {
		return "application/cloudevents+json"
	}
	return "application/json"
}

// Append appends a record to dst, without a newline.
func (f Format) Append(dst []byte, r Record) ([]byte, error) {
	if f == CloudEvents {
		return appendCloudEvent(dst, r)
	}
	return appendNDJSON(dst, r)
}

func appendNDJSON(dst []byte, r Record) ([]byte, error) {
	dst = append(dst, r.Envelope[:len(r.Envelope)-1]...)
	dst = append(dst, `,"organization_id":`...)
	if r.OrgID == "" {
		dst = append(dst, "null"...)
	} else {
		text, err := json.Marshal(r.OrgID)
		if err != nil {
			return nil, err
		}
		dst = append(dst, text...)
	}
	if r.Seq == 0 {
		return append(dst, `,"sequence":null,"stored_at":null}`...), nil
	}
	dst = append(dst, `,"sequence":`...)
	dst = strconv.AppendUint(dst, r.Seq, 10)
	dst = append(dst, `,"stored_at":"`...)
	dst = r.Stored.UTC().AppendFormat(dst, time.RFC3339Nano)
	return append(dst, `"}`...), nil
}

// cloudEvent is a record in the JSON format of CloudEvents 1.0
// (https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md), with the
// standard extensions partitionkey and sequence.
type cloudEvent struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Subject     string `json:"subject,omitempty"`
	Time        string `json:"time,omitempty"`
	ContentType string `json:"datacontenttype"`
	// Extensions.
	HubID        domain.HubID    `json:"hubid"`
	PartitionKey domain.HubID    `json:"partitionkey"`
	Organization string          `json:"organizationid,omitempty"`
	Sequence     string          `json:"sequence,omitempty"`
	StoredAt     string          `json:"storedat,omitempty"`
	Data         json.RawMessage `json:"data"`
}

func appendCloudEvent(dst []byte, r Record) ([]byte, error) {
	var has struct {
		Device *int64 `json:"device_id"`
		Time   string `json:"time"`
	}
	if err := json.Unmarshal(r.Envelope, &has); err != nil {
		return nil, fmt.Errorf("envelope of %s %d: %w", r.Hub, r.Seq, err)
	}
	e := cloudEvent{
		SpecVersion: "1.0", ID: r.ID, Source: "/hubs/" + string(r.Hub), Type: r.Type,
		Time: has.Time, ContentType: "application/json",
		HubID: r.Hub, PartitionKey: r.Hub, Organization: r.OrgID, Data: r.Envelope,
	}
	if has.Device != nil {
		e.Subject = "devices/" + strconv.FormatInt(*has.Device, 10)
	}
	if r.Seq > 0 {
		// Padded, since the extension sequence is compared as text.
		e.Sequence = fmt.Sprintf("%020d", r.Seq)
		e.StoredAt = r.Stored.UTC().Format(time.RFC3339Nano)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	return append(dst, text...), nil
}
