package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

// addEvent adds an event of the hub to the feed that was stored a time ago.
func (b *hubBackend) addEvent(ago time.Duration, typ string, device int64, data string) {
	at := time.Now().Add(-ago)
	b.events = append(b.events, domain.EncodedEvent{
		StoredNanos: at.UnixNano(), Envelope: fmt.Appendf(
			nil, `{"cursor":"c","type":%q,"hub_id":%q,"device_id":%d,"time":%q,"clock_trusted":true,"data":%s}`,
			typ, b.hub, device, domain.FormatTime(at), data,
		),
	})
}

// textsOf returns the texts of the events on a page.
func textsOf(page string) string {
	var got []string
	for _, row := range strings.Split(page, "<tr data-severity")[1:] {
		_, text, _ := strings.Cut(row, "<td>")
		_, text, _ = strings.Cut(text, "<td>")
		_, text, _ = strings.Cut(text, "<bdi>")
		text, _, _ = strings.Cut(text, "</bdi>")
		got = append(got, text)
	}
	return strings.Join(got, "|")
}

// The page tells who opened a door: by site, device, kind, person or code, and time, and its address
// alone shows it again, also as a file.
func TestEventsOfTheOrganization(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.reported = []domain.ReportedState{
		b.state(1, "Front <door>", "lock", "true"), b.state(2, "Back", "lock", "true"),
	}
	b.addEvent(6*time.Hour, "channel.observed", 1, `{"key":"lock","value":false}`)
	b.addEvent(2*time.Hour, "channel.observed", 2, `{"key":"alarm","value":{"type":"lock","event":"keypad_unlock","active":true,"user":3}}`)
	b.addEvent(time.Hour, "channel.observed", 1, `{"key":"temperature","value":21}`)
	b.addEvent(time.Minute, "device.added", 9, `{"name":"Lamp"}`)
	b.addEvent(0, "channel.desired", 1, `{"key":"lock","value":true}`)
	opened, code, command := "Unlocked", "Unlocked at the keypad", "Command: lock"
	from := time.Now().Add(-7 * time.Hour).UTC().Format("2006-01-02T15:04")
	to := time.Now().Add(-90 * time.Minute).UTC().Format("2006-01-02T15:04")
	for query, want := range map[string]string{
		"":                             command + "|Device joined: Lamp|" + code + "|" + opened,
		"kind=doors":                   command + "|" + code + "|" + opened,
		"device=Front+%3Cdoor%3E":      command + "|" + opened,
		"device=nothing":               "",
		"kind=readings":                "Temperature 21",
		"kind=commands":                command,
		"who=CODE+3":                   code,
		"who=at+the+device":            opened,
		"from=" + from + "&to=" + to:   code + "|" + opened,
		"site=x%00&kind=x&from=y&to=z": command + "|Device joined: Lamp|" + code + "|" + opened,
	} {
		page := b.page(t, "/events?"+query)
		checkPage(t, page)
		if got := textsOf(page); got != want {
			t.Errorf("%q: got %q, want %q: %s", query, got, want, page)
		}
		file, rows := b.page(t, "/events.csv?"+query), strings.Count(page, "<tr data-")
		if n := strings.Count(file, "\r\n"); n != 1+rows {
			t.Errorf("%q: got a file of %d lines, want a head and %d events", query, n, rows)
		}
	}
	// The event log of a hub is that page of one hub, which shows everything at first.
	for query, want := range map[string]string{
		"":                               command + "|Device joined: Lamp|Temperature 21|" + code + "|" + opened,
		"device=1&kind=important":        command + "|" + opened,
		"device=2&details=1":             code,
		"device=77":                      "",
		"device=x&kind=doors&site=other": command + "|" + code + "|" + opened,
	} {
		page := b.page(t, b.path+"/events?"+query)
		checkPage(t, page)
		if got := textsOf(page); got != want || len(b.chosen.Hubs) != 1 || b.chosen.Hubs[0] != b.hub {
			t.Errorf("%q of the hub: got %q from %+v, want %q", query, got, b.chosen, want)
		}
		if raw := strings.Contains(page, "keypad_unlock"); raw != strings.Contains(query, "details") {
			t.Errorf("%q of the hub: got raw fields: %t, want the contrary", query, raw)
		}
	}
	file := b.page(t, b.path+"/events.csv?device=2")
	if strings.Count(file, "\r\n") != 2 || !strings.Contains(file, `"Back","2"`) {
		t.Errorf("file of a device: got %s, want one event", file)
	}
	if page := b.page(t, "/events?site="+b.SiteID); len(b.chosen.Sites) != 1 ||
		!strings.Contains(page, "Front &lt;door&gt;") || !strings.Contains(page, "at the device") {
		t.Errorf("got %s, want the feed of the site %+v", page, b.chosen)
	}
	for i := range 150 { // stored at the same moment, as hubs send many at once
		b.addEvent(0, "rule.created", 1, fmt.Sprintf(`{"name":"r%d"}`, i))
		b.events[len(b.events)-1].StoredNanos = b.events[len(b.events)-1-i].StoredNanos
	}
	page := b.page(t, "/events?kind=rules")
	_, older, _ := strings.Cut(page, `<a class="button plain" href="`)
	older, _, _ = strings.Cut(older, `"`)
	lacks(t, has(t, page, "r149<", "r50<"), "r49<")
	page = b.page(t, "/events"+strings.ReplaceAll(older, "&amp;", "&"))
	lacks(t, has(t, page, "r49<"), "r50<", "Older")
	b.reported, b.unreadable = nil, domain.Unavailable("not now")
	b.want(t, http.StatusServiceUnavailable, "GET", "/events?device=x", nil)
	page = b.page(t, "/events?"+url.Values{"kind": {"commands"}}.Encode())
	has(t, page, "Device 1")
}
