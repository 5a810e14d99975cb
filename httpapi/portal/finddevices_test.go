package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"hubcloud/domain"
)

// The page finds devices of all sites by kind and state, and its address alone shows them again.
func TestFindDevices(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	checkPage(t, read(t, b.ask("GET", "/devices", nil)))
	far := b.state(9, "Door <9>", "lock", "false")
	low, full := b.state(4, "Sensor", "battery", "3"), b.state(5, "Other", "battery", "80")
	b.reported = []domain.ReportedState{low, full, far}
	page := read(t, b.ask("GET", "/devices?show=unlocked&site="+b.SiteID, nil))
	checkPage(t, page)
	for _, want := range []string{
		"Door &lt;9&gt;", "unlocked", `value="unlocked" selected`, `value="` + b.SiteID + `" selected`,
		"1 device<", "may have changed since",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("got %s, want %q in it", page, want)
		}
	}
	if b.asked.Key == nil || *b.asked.Key != "lock" || b.asked.Value == nil || *b.asked.Value ||
		b.asked.SiteID == nil || *b.asked.SiteID != b.SiteID {
		t.Errorf("got filter %+v, want unlocked doors at the site", b.asked)
	}
	if got := read(t, b.ask("GET", "/devices.csv?show=unlocked", nil)); strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, `"Door <9>","9",`) {
		t.Errorf("export: got %q, want a head and the door", got)
	}
	if got := read(t, b.ask("GET", "/devices.csv", nil)); strings.Count(got, "\n") != 4 {
		t.Errorf("export of all devices: got %q, want a head and 3", got)
	}
	if page := read(t, b.ask("GET", "/devices", nil)); !strings.Contains(
		page, `<bdi class="tag wait">unlocked</bdi>`,
	) {
		t.Errorf("got %s, want the door's state", page)
	}
	if page := read(t, b.ask("GET", "/devices?show=unlocked&room=no+such", nil)); !strings.Contains(
		page, "No devices match.",
	) {
		t.Errorf("got %s, want no device of another room", page)
	}
	page = read(t, b.ask("GET", "/devices?kind=Locks", nil))
	if !strings.Contains(page, "1 device<") || !strings.Contains(page, "<option selected>Locks<") {
		t.Errorf("got %s, want the lock only", page)
	}
	if page := read(t, b.ask("GET", "/devices?show=batteries", nil)); strings.Index(
		page, "Sensor",
	) > strings.Index(page, "Other") {
		t.Errorf("got %s, want the lowest battery first", page)
	}
	page = read(t, b.ask("GET", "/devices?show=low-batteries", nil))
	if !strings.Contains(page, "Sensor") || strings.Contains(page, "Other") {
		t.Errorf("got %s, want the low battery only", page)
	}
	b.reported = []domain.ReportedState{far, b.state(9, "Door <9>", "battery", "70")}
	for i := range b.reported {
		b.reported[i].Channel.Available = false
	}
	if page := read(t, b.ask("GET", "/devices?show=unreachable", nil)); !strings.Contains(
		page, "1 device<",
	) || !strings.Contains(page, "out of reach") {
		t.Errorf("got %s, want the device once", page)
	}
	for _, unknown := range []string{"nothing", ""} {
		if page := read(t, b.ask("GET", "/devices?show="+unknown, nil)); !strings.Contains(page, "2 devices<") ||
			!strings.Contains(page, "out of reach") {
			t.Errorf("show=%s: got %s, want all devices, and which is out of reach", unknown, page)
		}
	}
}

// A page has 200 channels; the link to the next page goes on after them.
func TestFindDevicesPages(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	for i := range int64(205) {
		b.reported = append(b.reported, b.state(i+1, fmt.Sprint("Door ", i+1), "lock", "true"))
	}
	page := read(t, b.ask("GET", "/devices?show=locked", nil))
	link := regexp.MustCompile(`href="(\?[^"]*after=[^"]*)"`).FindStringSubmatch(page)
	if !strings.Contains(page, "200 devices") || link == nil {
		t.Fatalf("got %s, want 200 devices and a link", page)
	}
	next := strings.ReplaceAll(link[1], "&amp;", "&")
	if page := read(t, b.ask("GET", "/devices"+next, nil)); !strings.Contains(page, "5 devices") ||
		strings.Contains(page, "after=") {
		t.Errorf("got %s, want the other 5 devices", page)
	}
	b.endless = true // a page that ended before it found any
	page = read(t, b.ask("GET", "/devices?show=unreachable", nil))
	if !strings.Contains(page, "No devices match on this page.") ||
		!strings.Contains(page, "after=") {
		t.Errorf("got %s, want an empty page with a link to the next one", page)
	}
	b.endless = false
	for _, after := range []string{"x", "{}", `{"DeviceID":"x"}`, "\x00"} {
		query := url.Values{"show": {"locked"}, "after": {after}}.Encode()
		if response := b.ask("GET", "/devices?"+query, nil); response.StatusCode != http.StatusOK {
			t.Errorf("after %q: got %d, want the first page", after, response.StatusCode)
		}
	}
}

// One search finds devices, rooms, sites, people and pages, and its address alone shows them again.
func TestSearch(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.reported = []domain.ReportedState{b.state(9, "Back door <9>", "lock", "false")}
	for find, want := range map[string]string{
		"door":                            "/devices/9\"",
		"Back door":                       "Back door &lt;9&gt;",
		"Back":                            `<bdi class="tag wait">unlocked</bdi>`,
		"door H":                          "Nothing has",
		b.SiteID:                          "/sites/" + b.SiteID + "\"",
		"ann@":                            "/members?find=ann",
		"developers keys":                 "/keys\"",
		"unlocked":                        "/devices?show=unlocked\"",
		"locks":                           "/devices?kind=Locks\"",
		strings.Repeat("<b>", 60) + "end": "Nothing has",
		"":                                "Type a part",
	} {
		page := read(t, b.ask("GET", "/search?q="+url.QueryEscape(find), nil))
		checkPage(t, page)
		if !strings.Contains(page, want) {
			t.Errorf("%q: got %s, want %q in it", find, page, want)
		}
	}
	b.unreadable = domain.Unavailable("the database is away")
	if page := read(t, b.ask("GET", "/search?q=keys", nil)); !strings.Contains(page, "/keys\"") {
		t.Errorf("without reports: got %s, want the page of keys", page)
	}
}
