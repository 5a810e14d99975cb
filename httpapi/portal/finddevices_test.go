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
	checkPage(t, b.page(t, "/devices"))
	far := b.state(9, "Door <9>", "lock", "false")
	low, full := b.state(4, "Sensor", "battery", "3"), b.state(5, "Other", "battery", "80")
	b.reported = []domain.ReportedState{low, full, far}
	page := b.page(t, "/devices?show=unlocked&site="+b.SiteID)
	checkPage(t, page)
	has(
		t, page, "Door &lt;9&gt;", "unlocked", `value="unlocked" selected`,
		`value="`+b.SiteID+`" selected`, "1 device<", "may have changed since",
	)
	if b.asked.Key == nil || *b.asked.Key != "lock" || b.asked.Value == nil || *b.asked.Value ||
		b.asked.SiteID == nil || *b.asked.SiteID != b.SiteID {
		t.Errorf("got filter %+v, want unlocked doors at the site", b.asked)
	}
	if got := b.page(t, "/devices.csv?show=unlocked"); strings.Count(got, "\n") != 2 ||
		!strings.Contains(got, `"Door <9>","9",`) {
		t.Errorf("export: got %q, want a head and the door", got)
	}
	if got := b.page(t, "/devices.csv"); strings.Count(got, "\n") != 4 {
		t.Errorf("export of all devices: got %q, want a head and 3", got)
	}
	has(t, b.page(t, "/devices"), `<bdi class="tag wait">unlocked</bdi>`)
	has(t, b.page(t, "/devices?show=unlocked&room=no+such"), "No devices match.")
	has(t, b.page(t, "/devices?kind=Locks"), "1 device<", "<option selected>Locks<")
	if page := b.page(t, "/devices?show=batteries"); strings.Index(
		page, "Sensor",
	) > strings.Index(page, "Other") {
		t.Errorf("got %s, want the lowest battery first", page)
	}
	page = b.page(t, "/devices?show=low-batteries")
	lacks(t, has(t, page, "Sensor"), "Other")
	b.reported = []domain.ReportedState{far, b.state(9, "Door <9>", "battery", "70")}
	for i := range b.reported {
		b.reported[i].Channel.Available = false
	}
	has(t, b.page(t, "/devices?show=unreachable"), "1 device<", "out of reach")
	for _, unknown := range []string{"nothing", ""} {
		has(t, b.page(t, "/devices?show="+unknown), "2 devices<", "out of reach")
	}
}

// A page has 200 channels; the link to the next page goes on after them.
func TestFindDevicesPages(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	for i := range int64(205) {
		b.reported = append(b.reported, b.state(i+1, fmt.Sprint("Door ", i+1), "lock", "true"))
	}
	page := b.page(t, "/devices?show=locked")
	link := regexp.MustCompile(`href="(\?[^"]*after=[^"]*)"`).FindStringSubmatch(page)
	if !strings.Contains(page, "200 devices") || link == nil {
		t.Fatalf("got %s, want 200 devices and a link", page)
	}
	next := strings.ReplaceAll(link[1], "&amp;", "&")
	lacks(t, has(t, b.page(t, "/devices"+next), "5 devices"), "after=")
	b.endless = true // a page that ended before it found any
	page = b.page(t, "/devices?show=unreachable")
	has(t, page, "No devices match on this page.", "after=")
	b.endless = false
	for _, after := range []string{"x", "{}", `{"DeviceID":"x"}`, "\x00"} {
		query := url.Values{"show": {"locked"}, "after": {after}}.Encode()
		b.want(t, http.StatusOK, "GET", "/devices?"+query, nil)
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
		page := b.page(t, "/search?q="+url.QueryEscape(find))
		has(t, checkPage(t, page), want)
	}
	b.unreadable = domain.Unavailable("the database is away")
	has(t, b.page(t, "/search?q=keys"), "/keys\"")
}
