package portal_test

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/streamstest"
)

// The pages of hubs and devices show their data, hold the promises of all pages, and show names as
// text.
func TestHubPages(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	if _, err := b.Organization.Directory.RenameSite(
		t.Context(), installationtest.Operator, b.ID, b.SiteID, "Mill & Sons",
	); err != nil {
		t.Fatal(err)
	}
	room := "Lobby"
	if _, err := b.Organization.Directory.LabelDevice(
		t.Context(), installationtest.Operator,
		domain.LabelDevice{OrgID: b.ID, HubID: b.hub, DeviceID: 2, SetRoom: true, Room: &room},
	); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string][]string{
		"": {
			"Mill &amp; Sons", string(b.hub), `data-count="online">1<`,
			"older events, for 24 hours",
		},
		b.path: {
			"2.4.1", "Guests", "-61 dBm", "unlocked", "Not done", "Setting to", "Failed", "87 %",
			`type="color"`, `max="30"`, "Lobby", "Open pairing",
			"The device sleeps and is expected to wake <time",
		},
		b.path + "/devices/1":  {"Name and room", "Forget", "Charts"},
		b.path + "/events":     {"No events yet.", "− 1 hour", "All devices", "Times are in UTC"},
		b.path + "/reset-link": {"Reset the link of this hub?", "six hours"},
	} {
		has(t, checkPage(t, b.want(t, http.StatusOK, "GET", path, nil)), says...)
	}
}

// Every page and action of a hub of another organization is a 404.
func TestForeignHub(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	owner := fmt.Sprintf("owner@t%d.example.org", backends.Add(1))
	foreign := b.NewOrganization(t, "Quay", owner)
	foreignHub := foreign.NewHub(t)
	for _, hub := range []domain.HubID{foreignHub, "hub-none-none-none", "x"} {
		for _, page := range []string{
			"", "/events", "/reset-link", "/remove", "/devices", "/devices/1", "/devices/1/card",
		} {
			b.want(t, http.StatusNotFound, "GET", "/hubs/"+string(hub)+page, nil)
		}
		for _, action := range []string{
			"/pairing", "/pairing/close", "/removal", "/removal/close", "/place", "/reset-link",
			"/remove", "/devices/1/commands", "/devices/1/label", "/devices/1/forget",
		} {
			b.want(t, http.StatusNotFound, "POST", "/hubs/"+string(hub)+action, url.Values{})
		}
	}
	for path, form := range map[string]url.Values{
		"/stream": {"hub": {string(foreignHub)}},
		"/attention/seen": {
			"hub": {string(foreignHub)}, "condition": {"hub_offline"},
			"since": {time.Now().Format(time.RFC3339Nano)},
		},
	} {
		b.want(t, http.StatusNotFound, "POST", path, form)
	}
	if !reflect.DeepEqual(b.calls, hubCalls{}) {
		t.Errorf("got calls %+v, want none", b.calls)
	}
	for _, id := range []string{b.ID, foreign.ID} {
		org, err := b.Organization.Directory.Org(t.Context(), id)
		if err != nil || len(org.Seen) != 0 {
			t.Errorf("organization %s: got %+v, %v, want nothing seen", id, org.Seen, err)
		}
	}
}

// TestHubActions: each works as a form without scripts, by the member who sent it.
func TestHubActions(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	hub, device := b.path, b.path+"/devices/1"
	for path, form := range map[string]url.Values{
		device + "/commands":   lockCommand(),
		device + "/label":      {"name": {" Front door "}, "room": {""}},
		device + "/forget":     {},
		hub + "/place":         {"name": {""}, "site": {b.SiteID}},
		hub + "/pairing":       {"setup_code": {"12345"}},
		hub + "/pairing/close": {},
		hub + "/removal":       {},
		hub + "/removal/close": {},
		hub + "/reset-link":    {},
	} {
		b.calls = hubCalls{}
		response := b.ask("POST", path, form)
		if response.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: got %d %s, want 303", path, response.StatusCode, read(t, response))
			continue
		}
		page, err := url.Parse(public + "/portal/" + b.ID + path)
		streamstest.Must(t, err)
		to, err := page.Parse(response.Header.Get("Location"))
		if err != nil || to.Path != "/portal/"+b.ID+hub {
			t.Errorf("%s: redirected to %v, %v, want the hub's page", path, to, err)
		}
		if strings.HasSuffix(path, "/pairing") &&
			(to.Query().Get("pairing") == "" || *b.calls.code != "12345") {
			t.Errorf("pairing: redirected to %v with code %v, want code 12345", to, b.calls.code)
		}
		changed := len(b.calls.sent)+len(b.calls.labeled)+len(b.calls.placed) > 0 ||
			slices.Contains(b.calls.done, "reset")
		if b.calls.origin.At.IsZero() == changed {
			t.Errorf("%s: got origin %+v, want one for each change", path, b.calls.origin)
		}
	}
	b.calls = hubCalls{}
	b.ask("POST", device+"/commands", lockCommand())
	if len(b.calls.sent) != 1 || b.calls.sent[0].OrgID != b.ID || b.calls.sent[0].HubID != b.hub ||
		string(b.calls.sent[0].Value) != "true" ||
		b.calls.origin.Actor != (domain.Actor{Kind: domain.ActorMember, ID: b.Owner.ID}) {
		t.Errorf("got commands %+v by %+v, want one by the member", b.calls.sent, b.calls.origin)
	}
	b.ask("POST", hub+"/place", url.Values{"name": {" Lobby "}, "site": {"other"}})
	if change := b.calls.placed[0]; *change.Name != "Lobby" || !change.SetName ||
		*change.SiteID != "other" ||
		change.HubID != b.hub ||
		change.OrgID != b.ID {
		t.Errorf("place: got %+v, want Lobby at the other site", change)
	}
	b.ask("POST", device+"/label", url.Values{"name": {"Front door"}, "room": {""}})
	if change := b.calls.labeled[0]; *change.Name != "Front door" || change.Room != nil ||
		!change.SetRoom {
		t.Errorf("label: got %+v, want the name Front door and no room", change)
	}
	b.ask("POST", device+"/label", url.Values{"name": {b.devices[0].Name}, "room": {"Hall"}})
	if change := b.calls.labeled[1]; change.Name != nil || *change.Room != "Hall" {
		t.Errorf("label with the reported name: got %+v, want no name and the room Hall", change)
	}
}

// A removed hub has no page to return to.
func TestRemoveHub(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	checkPage(t, b.page(t, b.path+"/remove"))
	response := b.ask("POST", b.path+"/remove", url.Values{})
	if to := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther ||
		!strings.HasSuffix(to, "../"+b.ID) || !slices.Equal(b.calls.done, []string{"remove"}) ||
		b.calls.origin.Actor.ID != b.Owner.ID {
		t.Errorf(
			"got %d to %q and calls %+v, want the dashboard and one removal", response.StatusCode, to,
			b.calls,
		)
	}
}

// A script gets a status and JSON in place of a page.
func TestActionsFromScripts(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	path := b.path + "/devices/1/commands"
	command := lockCommand()
	b.want(t, http.StatusNoContent, "POST", path, command, "Accept", "application/json")
	b.fails = domain.Errorf(domain.CodeHubOffline, "the hub is not connected")
	text := b.want(
		t, http.StatusServiceUnavailable, "POST", path, command, "Accept", "application/json",
	)
	if text != `{"message":"The hub is not connected."}`+"\n" {
		t.Errorf("offline hub: got %s, want a message", text)
	}
	command.Set("value", "perhaps")
	b.want(t, http.StatusBadRequest, "POST", path, command, "Accept", "application/json")
}

// A rejected form about a hub is shown on its page with what was typed, not as an
// error page.
func TestRejectedHubForms(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	b.rejects = domain.Errorf(domain.CodeInvalidRequest, "setup_code must be shorter")
	hub, device := b.path, b.path+"/devices/1"
	long := strings.Repeat("x", 201)
	for path, try := range map[string]struct {
		form url.Values
		says []string
	}{
		hub + "/pairing": {
			url.Values{"setup_code": {"MT:0<000000"}},
			[]string{
				`id="pairing-problem">Setup code must be shorter.<`, `value="MT:0&lt;000000" autofocus`,
			},
		},
		hub + "/pairing/close": {
			url.Values{}, []string{`role="alert">Setup code must be shorter.<`},
		},
		hub + "/removal": {
			url.Values{},
			[]string{`id="removal-problem">`, `autofocus aria-describedby="removal-problem"`},
		},
		hub + "/reset-link": {
			url.Values{}, []string{`role="alert">Setup code must be shorter.<`},
		},
		hub + "/place": {
			url.Values{"name": {long}, "site": {b.SiteID}},
			[]string{`id="place-problem">`, long, `value="` + b.SiteID + `" selected`},
		},
		device + "/label": {
			url.Values{"name": {long}, "room": {"Attic"}},
			[]string{`id="label-problem">`, long, `value="Attic"`},
		},
		device + "/forget": {
			url.Values{},
			[]string{`id="forget-problem">Setup code must`, `<details class="guard" open>`},
		},
		device + "/commands": {
			url.Values{
				"key": {"lock"}, "endpoint": {"0"}, "value": {"perhaps"},
				"idempotency_key": {"once"},
			},
			[]string{`role="alert">`, "Open pairing"},
		},
	} {
		has(t, checkPage(t, b.want(t, http.StatusBadRequest, "POST", path, try.form)), try.says...)
		// Its address stands in the browser's bar, and under it the page's own links.
		to := b.ask("GET", path+"?hours=6", nil).Header.Get("Location")
		if path != hub+"/reset-link" &&
			(!strings.HasSuffix(to, "?hours=6") || !strings.Contains(to, hub)) {
			t.Errorf("%s: redirected to %q, want the hub's page with the query", path, to)
		}
	}
	has(t, b.page(t, device+"/card?up=5"), `href="../../../../../`+b.ID+device+`"`)
	b.rejects, b.fails = nil, domain.Errorf(domain.CodeHubOffline, "the hub is not connected")
	page := b.want(t, http.StatusServiceUnavailable, "POST", device+"/forget", url.Values{})
	has(t, page, `href="../../../../../`+b.ID+hub+`"`)
	lacks(t, b.page(t, "/hubs/hub-none-none-none"), "Back to the hub")
}
