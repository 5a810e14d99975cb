package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
)

// Rooms are listed and renamed, and devices that are chosen from the list are moved to a room, or
// get a command after a page that tells what will be done.
func TestRoomsAndChosenDevices(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	checkPage(t, b.page(t, "/rooms"))
	b.reported = []domain.ReportedState{
		b.state(1, "Front", "lock", "true"), b.state(2, "Back", "lock", "true"),
	}
	page := b.page(t, "/rooms")
	checkPage(t, page)
	link := "?site=" + b.SiteID + "&amp;room=Hall%20door"
	has(t, page, "1 room<", link)
	page = b.page(t, "/devices?room=hall+door")
	has(t, checkPage(t, page), "2 devices<")
	first, second := fmt.Sprint(b.hub, "/1"), fmt.Sprint(b.hub, "/2")
	rename := []string{"site", b.SiteID, "room", "Hall door", "name"}
	other := string(b.hub) + "/9"
	for _, test := range []struct {
		path   string
		status int
		fields []string
		want   string
	}{
		{"/rooms", 303, slices.Concat(rename, []string{"Lobby"}), fmt.Sprintf("map[%s:[1 2]] to Lobby", b.hub)},
		{"/rooms", 400, slices.Concat(rename, []string{" "}), "must be 1 to 200"},
		{
			"/devices/room?kind=Locks", 303, []string{"device", second, "device", other, "room", "Attic"},
			fmt.Sprintf("map[%s:[2]] to Attic", b.hub),
		},
		{"/devices/room", 400, []string{"room", "Attic"}, "Choose 1 to"},
		{"/devices/action", 400, []string{"device", first, "action", "melt"}, "Choose what to do"},
		{"/devices/action", 400, []string{"action", "lock"}, "Choose at least one"},
		{"/devices/action", 200, []string{"device", first, "action", "lock"}, "1 device<"},
		{
			"/devices/action", 200,
			[]string{"device", first, "action", "lock", "once", "x", "target", first + "/0"}, "of 1.",
		},
	} {
		b.calls = hubCalls{}
		form := url.Values{}
		for i := 0; i < len(test.fields); i += 2 {
			form.Add(test.fields[i], test.fields[i+1])
		}
		response := b.ask("POST", test.path, form)
		got := read(t, response)
		if test.status == http.StatusSeeOther {
			got = strings.Join(b.calls.done, ";")
		} else {
			checkPage(t, got)
		}
		if response.StatusCode != test.status || !strings.Contains(got, test.want) {
			t.Errorf(
				"%s %q: got %d %s, want %d %q", test.path, test.fields, response.StatusCode, got,
				test.status, test.want,
			)
		}
		if sent := slices.Contains(test.fields, "once"); sent != (len(b.calls.sent) == 1) {
			t.Errorf("%s %q: got commands %v", test.path, test.fields, b.calls.sent)
		}
	}
}
