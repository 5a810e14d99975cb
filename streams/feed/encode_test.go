package feed

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// Hubs choose event types. A type with line ends must not end the frame's line or begin another
// field.
func TestFrameOfAnyType(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{
		"channel.observed", "a\nid: x", "a\r\n\r\ndata: {}", "nul\x00", `quote"back\slash`, "ü",
		" ", "\u2028",
	} {
		payload, err := json.Marshal(
			domain.HubEvent{Type: typ, HubID: hubA, Data: json.RawMessage(`{"a":"b"}`)},
		)
		streamstest.Must(t, err)
		if err := checkPayload(payload); err != nil {
			t.Fatalf("checkPayload of type %q: %v", typ, err)
		}
		e, err := encode(domain.EpochID{1, 2, 3, 4}, 5, time.UnixMilli(6), payload)
		if err != nil {
			t.Fatalf("encode type %q: %v", typ, err)
		}
		lines := strings.Split(string(e.Frame), "\n")
		if len(lines) != 5 || lines[0] != "id: "+e.Cursor ||
			!strings.HasPrefix(lines[1], "event: ") || lines[2] != "data: "+string(e.Envelope) ||
			lines[3] != "" ||
			lines[4] != "" ||
			strings.ContainsAny(string(e.Frame), "\r\x00") {
			t.Errorf("frame of type %q is %q, want id, event, data and an empty line", typ, e.Frame)
		}
		var envelope struct{ Cursor, Type string }
		if err := json.Unmarshal(e.Envelope, &envelope); err != nil || envelope.Type != typ ||
			envelope.Cursor != e.Cursor {
			t.Errorf(
				"envelope of type %q is %q (%v), want that type and cursor %q", typ, e.Envelope,
				err, e.Cursor,
			)
		}
		if cap(e.Frame) != len(e.Frame) {
			t.Errorf("frame of type %q has capacity %d, want %d", typ, cap(e.Frame), len(e.Frame))
		}
	}
}

func FuzzPayloadType(f *testing.F) {
	f.Add([]byte(`{"type":"a","hub_id":"b"}`))
	f.Add([]byte(`{"type":"a\"\\\u0000"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		typ, err := payloadType(payload)
		var want struct {
			Type string `json:"type"`
		}
		// payloadType is only called with payloads that Append accepts.
		if checkPayload(payload) != nil || json.Unmarshal(payload, &want) != nil ||
			strings.Count(string(payload), `"type"`) > 1 ||
			strings.Count(strings.ToLower(string(payload)), "type") > 1 {
			return
		}
		if err != nil || typ != want.Type {
			t.Fatalf("payloadType(%q) = %q, %v; want %q", payload, typ, err, want.Type)
		}
	})
}
