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
		response := b.ask("GET", path, nil)
		page := read(t, response)
		if response.StatusCode != http.StatusOK {
			t.Errorf("GET %q: got %d %s, want 200", path, response.StatusCode, page)
			continue
		}
		for _, want := range says {
			if !strings.Contains(page, want) {
				t.Errorf("GET %q: got %s, want %q in it", path, page, want)
			}
		}
		checkPage(t, page)
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
			if response := b.ask(
				"GET", "/hubs/"+string(hub)+page, nil,
			); response.StatusCode != http.StatusNotFound {
				t.Errorf("GET %s%s: got %d, want 404", hub, page, response.StatusCode)
			}
		}
		for _, action := range []string{
			"/pairing", "/pairing/close", "/removal", "/removal/close", "/place", "/reset-link",
			"/remove", "/devices/1/commands", "/devices/1/label", "/devices/1/forget",
		} {
			if response := b.ask(
				"POST", "/hubs/"+string(hub)+action, url.Values{},
			); response.StatusCode != http.StatusNotFound {
				t.Errorf("POST %s%s: got %d, want 404", hub, action, response.StatusCode)
			}
		}
	}
	for path, form := range map[string]url.Values{
		"/stream": {"hub": {string(foreignHub)}},
		"/attention/seen": {
			"hub": {string(foreignHub)}, "condition": {"hub_offline"},
			"since": {time.Now().Format(time.RFC3339Nano)},
		},
	} {
		if response := b.ask("POST", path, form); response.StatusCode != http.StatusNotFound {
			t.Errorf("POST %s of a foreign hub: got %d, want 404", path, response.StatusCode)
		}
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
		device + "/commands": {
			"key": {"lock"}, "endpoint": {"0"}, "value": {"true"}, "idempotency_key": {"once"},
		},
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
		if err != nil {
			t.Fatal(err)
		}
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
	b.ask(
		"POST",
		device+"/commands",
		url.Values{
			"key":             {"lock"},
			"endpoint":        {"0"},
			"value":           {"true"},
			"idempotency_key": {"once"},
		},
	)
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
	checkPage(t, read(t, b.ask("GET", b.path+"/remove", nil)))
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

// A member without a managing role sees everything and sends commands, and changes nothing else.
func TestMemberPermissions(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	email := fmt.Sprintf("max@t%d.example.org", backends.Add(1))
	b.NewMember(t, email, domain.RoleMember)
	b.signIn(t, email)
	hub, device := b.path, b.path+"/devices/1"
	for _, action := range []string{
		hub + "/place", hub + "/pairing", hub + "/removal", hub + "/reset-link", hub + "/remove", device + "/label",
		device + "/forget",
	} {
		response := b.ask("POST", action, url.Values{})
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", action, response.StatusCode)
		}
	}
	command := url.Values{
		"key":             {"lock"},
		"endpoint":        {"0"},
		"value":           {"true"},
		"idempotency_key": {"once"},
	}
	response := b.ask("POST", device+"/commands", command)
	if response.StatusCode != http.StatusSeeOther || len(b.calls.sent) != 1 {
		t.Errorf("command: got %d, %d sent, want 303, 1", response.StatusCode, len(b.calls.sent))
	}
	if page := read(t, b.ask("GET", hub, nil)); strings.Contains(page, `/pairing"`) ||
		!strings.Contains(page, "Set<span") {
		t.Errorf("got %s, want controls and no pairing", page)
	}
}

// A script gets a status and JSON in place of a page.
func TestActionsFromScripts(t *testing.T) {
	t.Parallel()
	b := newHubBackend(t)
	path := b.path + "/devices/1/commands"
	command := url.Values{
		"key":             {"lock"},
		"endpoint":        {"0"},
		"value":           {"true"},
		"idempotency_key": {"once"},
	}
	if response := b.ask(
		"POST", path, command, "Accept", "application/json",
	); response.StatusCode != http.StatusNoContent {
		t.Errorf("command: got %d, want 204", response.StatusCode)
	}
	b.fails = domain.Errorf(domain.CodeHubOffline, "the hub is not connected")
	response := b.ask("POST", path, command, "Accept", "application/json")
	if text := read(t, response); response.StatusCode != http.StatusServiceUnavailable ||
		text != `{"message":"The hub is not connected."}`+"\n" {
		t.Errorf("offline hub: got %d %s, want 503 and a message", response.StatusCode, text)
	}
	command.Set("value", "perhaps")
	if response := b.ask(
		"POST", path, command, "Accept", "application/json",
	); response.StatusCode != http.StatusBadRequest {
		t.Errorf("invalid value: got %d, want 400", response.StatusCode)
	}
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
		response := b.ask("POST", path, try.form)
		page := read(t, response)
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", path, response.StatusCode)
		}
		for _, want := range try.says {
			if !strings.Contains(page, want) {
				t.Errorf("%s: got %s, want %q in it", path, page, want)
			}
		}
		checkPage(t, page)
		// Its address stands in the browser's bar, and under it the page's own links.
		to := b.ask("GET", path+"?hours=6", nil).Header.Get("Location")
		if path != hub+"/reset-link" &&
			(!strings.HasSuffix(to, "?hours=6") || !strings.Contains(to, hub)) {
			t.Errorf("%s: redirected to %q, want the hub's page with the query", path, to)
		}
	}
	if page := read(t, b.ask("GET", device+"/card?up=5", nil)); !strings.Contains(
		page, `href="../../../../../`+b.ID+device+`"`,
	) {
		t.Errorf("card for the page of a rejected form: got %s, want links from there", page)
	}
	b.rejects, b.fails = nil, domain.Errorf(domain.CodeHubOffline, "the hub is not connected")
	if response := b.ask(
		"POST", device+"/forget", url.Values{},
	); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("offline hub: got %d, want 503", response.StatusCode)
	} else if page := read(t, response); !strings.Contains(
		page, `href="../../../../../`+b.ID+hub+`"`,
	) {
		t.Errorf("offline hub: got %s, want a link to the hub", page)
	}
	if page := read(t, b.ask("GET", "/hubs/hub-none-none-none", nil)); strings.Contains(
		page, "Back to the hub",
	) {
		t.Errorf("unknown hub: got %s, want no link to it", page)
	}
}
