package browser

import (
	"encoding/csv"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// alarm is the value of an alarm channel.
type alarm struct {
	Type   string `json:"type"`
	Event  string `json:"event"`
	Active bool   `json:"active"`
	User   int    `json:"user,omitempty"`
}

// TestEventLog reads a hub's event log as a person who looks for who opened the front door: newest
// first, by the device's name, in local time, and as a file.
func TestEventLog(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Log")
	if _, err := chromedp.Call(
		p.ctx, emulation.SetTimezoneOverride,
		emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Dubai"},
	); err != nil {
		t.Fatal(err)
	}
	for i := range 130 {
		p.temperature(float64(i) + 0.5)
	}
	for _, data := range []any{
		alarm{"lock", "keypad_code_accepted", true, 2}, alarm{"lock", "jammed", true, 0},
	} {
		if _, err := p.hub.Emit(virtualhub.Event{
			Type: "channel.observed", DeviceID: 1,
			Data: map[string]any{"key": "alarm", "endpoint": 0, "value": data},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.hub.Emit(virtualhub.Event{
		Type: "rule.created", Data: map[string]any{"name": "=1+1", "enabled": true},
	}); err != nil {
		t.Fatal(err)
	}
	harness.Stored(t, p.hub)
	p.goTo("/portal/" + p.tenant.Org)
	streamstest.Eventually(t, "the page tells the time zone", func() bool {
		return eval[bool](p.tab, `document.cookie.includes("hubcloud_zone=Asia/Dubai")`)
	})
	p.goTo(p.hubPage() + "/events")
	p.await(".log tbody tr:nth-child(1)", "Rule added: =1+1")
	p.await(".log tbody tr:nth-child(2)", "Jammed")
	p.await(".log tbody tr:nth-child(2) .tag", "Alarm")
	p.await(".log tbody tr:nth-child(3)", "Code accepted")
	p.await(".log tbody tr:nth-child(3)", "code 2")
	p.await(".log tbody tr:nth-child(3)", "Front door")
	p.await(".log tbody tr:nth-child(4)", "Temperature 129.5 °C")
	p.await("#zone-hint", "Asia/Dubai (+04)")
	p.await(".log th", "Time (+04)")
	times := eval[[]string](
		p.tab, `{ const time = document.querySelector(".log time"); `+
			`[time.textContent.slice(-8, -3), time.title, new Intl.DateTimeFormat("en-GB", `+
			`{ hour: "2-digit", minute: "2-digit", timeZone: "Asia/Dubai" }).format(new Date(time.dateTime))] }`,
	)
	if times[0] != times[2] || !strings.HasSuffix(times[1], "UTC") {
		t.Errorf("time, its title and the local time: got %q, want the local time and UTC", times)
	}
	if eval[bool](p.tab, `document.querySelector(".log code") !== null`) {
		t.Error("the log shows machine types without being asked to")
	}
	p.check("newest")

	p.press(`a[href*="before="]`)
	p.await(".log tbody tr:last-child", "Temperature 0.5 °C")
	if eval[bool](p.tab, `document.querySelector('a[href*="before="]') !== null`) {
		t.Error("the last page offers older events")
	}
	p.check("older")

	// The device is chosen by its name; the address can be shared.
	p.do("choose the device", chooseIn("#of-device", "Front door"))
	p.choose("#kind", "only-alarms")
	p.click(`input[name="details"]`)
	p.press("main form button")
	p.await(".log tbody tr:nth-child(1)", "Jammed")
	p.await(".log tbody tr:nth-child(1) code", "channel.observed")
	p.await(".log .raw", `"event":"jammed"`)
	if n := eval[int](p.tab, `document.querySelectorAll(".log tbody tr").length`); n != 1 {
		t.Errorf("alarms of the front door: got %d, want 1", n)
	}
	p.check("filtered")
	rows := p.export()
	if len(rows) != 2 || rows[1][5] != "Front door" || rows[1][7] != "Jammed" ||
		!strings.HasPrefix(rows[0][0], "Time (Asia/Dubai)") {
		t.Errorf("file of the alarms of the front door: got %q, want one row", rows)
	}
	p.goTo(p.hubPage() + "/events?kind=rules")
	rows = p.export()
	if len(rows) != 2 || rows[1][7] != "Rule added: =1+1" ||
		!strings.HasPrefix(rows[1][11], "{") {
		t.Errorf("file of the rules: got %q, want one row", rows)
	}
	p.goTo(p.hubPage() + "/events")
	if rows = p.export(); len(rows) != 134 {
		t.Errorf("file of all events: got %d rows, want 134", len(rows))
	}
}

// export loads the file that the page's link names.
func (p *portal) export() [][]string {
	p.t.Helper()
	file := eval[string](
		p.tab, `fetch(document.querySelector("a[download]").href).then((response) => response.text())`,
	)
	rows, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil {
		p.t.Fatalf("the file is not CSV: %v: %.300s", err, file)
	}
	return rows
}

// TestFeedShowsWhatMatters checks that the list of live events shows an alarm and leaves readings
// out, until the viewer asks for everything.
func TestFeedShowsWhatMatters(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Feed")
	p.await("#connection", "Live")
	for i := range 700 { // more than the list keeps
		if i == 5 {
			if _, err := p.hub.Emit(virtualhub.Event{
				Type: "channel.observed", DeviceID: 2,
				Data: map[string]any{"key": "smoke", "endpoint": 0, "value": true},
			}); err != nil {
				t.Fatal(err)
			}
		}
		p.temperature(float64(i) + 0.5)
	}
	p.await("#events li", "Smoke detected")
	p.await("#events li .severity", "Alarm")
	if text := eval[string](p.tab, `document.querySelector("#events").textContent`); strings.Contains(text, "Temperature") {
		t.Errorf("the list shows readings: %.200s", text)
	}
	p.showAllEvents()
	p.await("#events", "Temperature 699.5 °C")
	// A name that reverses the text after it did so on the page, beyond its own element.
	if _, err := p.hub.Emit(virtualhub.Event{
		Type: "device.added", DeviceID: 9, Data: map[string]any{"name": "Front\u202edoor\u2067"},
	}); err != nil {
		t.Fatal(err)
	}
	p.await("#events li", "Device joined: Frontdoor")
	p.choose("#filter-severity", "3")
	p.await("#events li", "Smoke detected")
	if n := eval[int](p.tab, `document.querySelector("#events").childElementCount`); n != 1 {
		t.Errorf("alarms: got %d rows, want 1", n)
	}
	p.check("alarms")
}

// TestSameTexts checks that the list of live events and the event log, which are a script and a
// page of the service, describe events in the same words and give them the same severities.
func TestSameTexts(t *testing.T) {
	t.Parallel()
	p := newPortal(t, "Texts")
	p.goTo(p.hubPage())
	p.await("#connection", "Live")
	p.showAllEvents()
	events := []virtualhub.Event{}
	for _, data := range []string{
		`{"key":"alarm","endpoint":0,"value":{"type":"lock","event":"jammed","active":true}}`,
		`{"key":"alarm","endpoint":0,"value":{"type":"x","event":"beam_cut","active":false,"user":3}}`,
		`{"key":"alarm","endpoint":0,"value":{"event":"keypad_code_rejected","active":true}}`,
		`{"key":"alarm","endpoint":0,"value":null}`,
		`{"key":"lock","endpoint":0,"value":false}`,
		`{"key":"switch","endpoint":2,"value":true}`,
		`{"key":"battery","endpoint":0,"value":7}`,
		`{"key":"position","endpoint":0,"value":99}`,
		`{"key":"color","endpoint":0,"value":{"red":255,"green":0,"blue":7,"warm_white":9}}`,
		`{"key":"odd_thing","endpoint":3,"value":true}`,
		`{"key":"mode","endpoint":0,"value":"heat"}`,
		`{"key":"leak","endpoint":0,"value":true}`,
	} {
		events = append(events, virtualhub.Event{
			Type: "channel.observed", DeviceID: 2, Data: json.RawMessage(data),
		})
	}
	for kind, data := range map[string]string{
		"channel.desired":    `{"key":"lock","endpoint":0,"value":true}`,
		"device.updated":     `{"name":"","removed_channels":[]}`,
		"device.unavailable": `{}`,
		"device.forgotten":   `{"name":"Lamp"}`,
		"credential.created": `{"slot":3,"label":"Ann"}`,
		"credential.applied": `{"state":"active"}`,
		"rule.updated":       `{"name":"Night","enabled":true}`,
		"door.opened":        `{"by":"ann"}`,
	} {
		events = append(events, virtualhub.Event{
			Type: kind, DeviceID: 2, Data: json.RawMessage(data),
		})
	}
	for _, event := range events {
		if _, err := p.hub.Emit(event); err != nil {
			t.Fatalf("%s %s: %v", event.Type, event.Data, err)
		}
	}
	p.temperature(17.25)
	p.await("#events li", "Temperature 17.25 °C")
	var listed, logged []string
	streamstest.Eventually(t, "the live list has all events", func() bool {
		listed = eval[[]string](p.tab, `[...document.querySelectorAll("#events .what")].map((e) => e.textContent)`)
		return len(listed) > len(events)
	})
	// The log has the names and units that the hub's devices reported last, a moment after the events.
	streamstest.Eventually(t, "the log knows the thermometer", func() bool {
		p.goTo(p.hubPage() + "/events")
		logged = eval[[]string](
			p.tab, `[...document.querySelectorAll(".log td:nth-child(2)")].map((e) => e.textContent)`,
		)
		return slices.ContainsFunc(logged, func(s string) bool { return strings.HasSuffix(s, "°C") })
	})
	// The log has the codes that were used in a column of their own.
	signs := strings.NewReplacer("▲", "", "!", "", " (code 3)", "", " ", "")
	for i := range events {
		if signs.Replace(listed[i]) != signs.Replace(logged[i]) {
			t.Errorf("event %d: the live list shows %q, the log %q", i, listed[i], logged[i])
		}
	}
}
