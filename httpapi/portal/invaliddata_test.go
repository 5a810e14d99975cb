package portal

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// Invalid data of a hub broke pages: a device without a name had an invisible link, a value of
// kilobytes was shown in full, and very large numbers had no chart.
func TestInvalidHubData(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	long := strings.Repeat("é", 10_000)
	quoted, err := json.Marshal(long)
	streamstest.Must(t, err)
	values := map[string]json.RawMessage{
		"mode":        quoted,
		"alarm":       json.RawMessage(`{"type":` + string(quoted) + `,"nested":{"a":[1]}}`),
		"lock":        json.RawMessage(`"perhaps"`),
		"temperature": json.RawMessage("1e308"), "power": json.RawMessage("-1e308"),
		"color": json.RawMessage(`{"red":"x","green":-5,"blue":1e9}`),
		"level": json.RawMessage(`[1,2]`),
	}
	device := domain.Device{ID: -7, Name: "\u3164\u2800", Manufacturer: long, Model: long}
	for key, value := range values {
		device.Channels = append(device.Channels, domain.Channel{
			Key: key, Endpoint: 1 << 40, Unit: &long, Value: value, Writable: true,
			Available: true, Status: "surprised", Capabilities: json.RawMessage(`{"min":"x"}`),
		})
	}
	device.Channels = append(
		device.Channels,
		domain.Channel{Key: `"><script> x`, Value: json.RawMessage(`null`)},
		domain.Channel{
			Key:          "heating_setpoint",
			Writable:     true,
			Capabilities: json.RawMessage(`[]`),
		},
	)
	// The link to a device whose name shows nothing could not be seen.
	r.devices = []domain.Device{device}
	shown, err := r.live.getDevice(t.Context(), "org", hubA, -7)
	if err != nil || shown.Name != "Device -7" {
		t.Fatalf("got name %q, %v, want Device -7", shown.Name, err)
	}
	for _, c := range shown.Channels {
		if n := utf8.RuneCountInString(c.Text); n > 250 || c.Text == "" {
			t.Errorf("%s: got a text of %d characters, want 1 to 250", c.Key, n)
		}
	}
	r.append(
		hubA, "channel.observed", -7,
		`{"key":"temperature","endpoint":1099511627776,"value":1e308}`,
		`{"key":"temperature","endpoint":1099511627776,"value":-1e308}`,
		`{"key":"temperature","endpoint":1099511627776,"value":[]}`, `{"key":{}}`, `{}`,
	)
	charts, err := r.lastHour(shown)
	if err != nil || len(charts.Charts) != 1 || strings.Contains(charts.Charts[0].Path, "NaN") ||
		strings.Contains(charts.Charts[0].Path, "Inf") {
		t.Errorf("got charts %+v, %v, want one with finite numbers", charts, err)
	}
	for _, data := range []string{`{"name":7}`, `{"name":null}`, `{"name":` + string(quoted) + `}`, `{}`} {
		entry := entryOf(logEvent{Type: "device.added", Data: json.RawMessage(data)}, nil)
		if len(entry.Text) > 3000 || entry.Text == "" {
			t.Errorf("%.20s: got a text of %d bytes, want 1 to 3000", data, len(entry.Text))
		}
	}
	if _, text := describeValue("temperature", json.RawMessage("1e308")); text != "1e+308" {
		t.Errorf("large number: got %q, want 1e+308", text)
	}
}
