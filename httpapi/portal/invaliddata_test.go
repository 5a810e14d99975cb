package portal

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"hubcloud/domain"
)

// Invalid data of a hub broke pages: a device without a name had an invisible link, a value of
// kilobytes was shown in full, and very large numbers had no chart.
func TestInvalidHubData(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{})
	long := strings.Repeat("é", 10_000)
	quoted, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
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
	r.append(hubA, "device.added", 3, `{"name":7}`, `{"name":null}`, `{"name":`+string(quoted)+`}`)
	charts, err := r.live.drawCharts(t.Context(), shown, time.Hour)
	if err != nil || len(charts.Charts) != 1 || strings.Contains(charts.Charts[0].Path, "NaN") ||
		strings.Contains(charts.Charts[0].Path, "Inf") {
		t.Errorf("got charts %+v, %v, want one with finite numbers", charts, err)
	}
	page, err := r.live.readLog(t.Context(), hubA, logRequest{})
	if err != nil || len(page.Entries) != 8 {
		t.Fatalf("got %d entries, %v; want 8", len(page.Entries), err)
	}
	for _, entry := range page.Entries {
		if len(entry.Text) > 3000 {
			t.Errorf("%s: got a text of %d bytes, want at most 3000", entry.Type, len(entry.Text))
		}
	}
	if _, text := describeValue("temperature", json.RawMessage("1e308")); text != "1e+308" {
		t.Errorf("large number: got %q, want 1e+308", text)
	}
}

// For a time before the retention, the newest events must not be shown as if they were older.
func TestLogBeforeRetention(t *testing.T) {
	t.Parallel()
	r := newTestLive(t, Config{Retention: time.Hour})
	r.append(hubA, "channel.observed", 1, levels(1, 3)...)
	for ago, expired := range map[time.Duration]bool{2 * time.Hour: true, 50 * time.Minute: false} {
		page, err := r.live.readLog(t.Context(), hubA, logRequest{At: time.Now().Add(-ago)})
		if err != nil || len(page.Entries) != 0 || page.Expired != expired {
			t.Errorf(
				"%s ago: got %d entries, expired %v, %v, want 0, %v", ago, len(page.Entries),
				page.Expired, err, expired,
			)
		}
	}
}
