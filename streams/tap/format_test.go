package tap_test

import (
	"strings"
	"testing"

	"hubcloud/streams/tap"
)

// TestCloudEventSubject checks that only an event of a device has the device as its subject.
func TestCloudEventSubject(t *testing.T) {
	t.Parallel()
	for envelope, want := range map[string]string{
		`{"cursor":"c","type":"t","hub_id":"h","device_id":7,"time":"2026-01-02T03:04:05Z","data":{}}`:    `"subject":"devices/7"`,
		`{"cursor":"c","type":"t","hub_id":"h","device_id":null,"time":"2026-01-02T03:04:05Z","data":{}}`: ``,
	} {
		text, err := tap.CloudEvents.Append(
			nil, tap.Record{Hub: hubID(1), Type: "t", ID: "c", Seq: 1, Envelope: []byte(envelope)},
		)
		if err != nil || (want == "") != !strings.Contains(string(text), `"subject"`) ||
			!strings.Contains(string(text), want) {
			t.Errorf(
				"CloudEvent of %s: got %s, error %v, want subject %q", envelope, text, err, want,
			)
		}
	}
	if _, err := tap.CloudEvents.Append(nil, tap.Record{Envelope: []byte("no JSON")}); err == nil {
		t.Error("CloudEvent of an invalid envelope: got nil, want an error")
	}
}
