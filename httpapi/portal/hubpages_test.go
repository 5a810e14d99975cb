package portal_test

import (
	"bufio"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"hubcloud/domain"
)

// The pages of hubs and devices show their data, hold the promises of all pages, and show names as
// text.
func TestHubPages(t *testing.T) {
	t.Parallel()
	for path, says := range map[string][]string{
		"": {"Mill &amp; Sons", string(ownHub), `data-count="online">1<`},
		"/hubs/" + string(ownHub): {
			"2.4.1", "Guests", "-61 dBm", "unlocked", "diverged", "pending", "failed", "87 %",
			`type="color"`, `max="30"`, "Open pairing",
		},
		"/hubs/" + string(ownHub) + "/devices/1":  {"Name and room", "Forget", "Charts"},
		"/hubs/" + string(ownHub) + "/events":     {"No events from", "− 1 hour"},
		"/hubs/" + string(ownHub) + "/reset-link": {"Reset the link of this hub?", "six hours"},
	} {
		response := newHubBackend().ask("GET", path, nil)
		page := read(t, response)
		if response.StatusCode != http.StatusOK {
			t.Errorf("%q: %d %s", path, response.StatusCode, page)
			continue
		}
		for _, want := range says {
			if !strings.Contains(page, want) {
				t.Errorf("%q does not say %q", path, want)
			}
		}
		checkOrgPage(t, path, page)
	}
}

// checkOrgPage checks what every page of an organization promises.
func checkOrgPage(t *testing.T, path, page string) {
	t.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	ids, labels, headings := map[string]int{}, map[string]bool{}, 0
	var inputs []string
	for node := range document.Descendants() {
		if node.Type != html.ElementNode {
			continue
		}
		attributes := map[string]string{}
		for _, a := range node.Attr {
			attributes[a.Key] = a.Val
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("%q: <%s> has %s", path, node.Data, a.Key)
			}
		}
		if id := attributes["id"]; id != "" {
			ids[id]++
		}
		switch node.Data {
		case "h1":
			headings++
		case "label":
			labels[attributes["for"]] = true
		case "input", "select":
			if attributes["type"] != "hidden" {
				inputs = append(inputs, attributes["id"])
			}
		case "script":
			if attributes["src"] == "" && attributes["type"] != "application/json" {
				t.Errorf("%q: a script stands in the page", path)
			}
		}
	}
	if headings != 1 {
		t.Errorf("%q has %d headings", path, headings)
	}
	for id, n := range ids {
		if n > 1 {
			t.Errorf("%q has %d elements %q", path, n, id)
		}
	}
	for _, id := range inputs {
		if !labels[id] {
			t.Errorf("%q: nothing names the field %q", path, id)
		}
	}
}

// Every page and action of a hub of another organization is a 404.
func TestForeignHub(t *testing.T) {
	t.Parallel()
	b := newHubBackend()
	for _, hub := range []domain.HubID{foreignHub, "hub-none-none-none", "x"} {
		for _, page := range []string{
			"", "/events", "/reset-link", "/devices", "/devices/1", "/devices/1/card",
		} {
			if response := b.ask(
				"GET", "/hubs/"+string(hub)+page, nil,
			); response.StatusCode != http.StatusNotFound {
				t.Errorf("GET %s%s: %d", hub, page, response.StatusCode)
			}
		}
		for _, action := range []string{
			"/pairing", "/pairing/close", "/removal", "/removal/close", "/place", "/reset-link",
			"/devices/1/commands", "/devices/1/label", "/devices/1/forget",
		} {
			if response := b.ask(
				"POST", "/hubs/"+string(hub)+action, url.Values{},
			); response.StatusCode != http.StatusNotFound {
				t.Errorf("POST %s%s: %d", hub, action, response.StatusCode)
			}
		}
	}
	if response := b.ask("POST", "/stream", url.Values{
		"hub": {string(foreignHub)},
	}); response.StatusCode != http.StatusNotFound {
		t.Errorf("the stream of another's hub: %d", response.StatusCode)
	}
	if len(b.done)+len(b.sent)+len(b.labeled)+len(b.placed) > 0 {
		t.Errorf("done: %v, %v, %v", b.done, b.sent, b.labeled)
	}
}

// TestHubActions: each works as a form without scripts, by the member who sent it.
func TestHubActions(t *testing.T) {
	t.Parallel()
	hub, device := "/hubs/"+string(ownHub), "/hubs/"+string(ownHub)+"/devices/1"
	for path, form := range map[string]url.Values{
		device + "/commands": {
			"key": {"lock"}, "endpoint": {"0"}, "value": {"true"}, "idempotency_key": {"once"},
		},
		device + "/label":      {"name": {" Front door "}, "room": {""}},
		device + "/forget":     {},
		hub + "/place":         {"name": {""}, "site": {"site"}},
		hub + "/pairing":       {"setup_code": {"12345"}},
		hub + "/pairing/close": {},
		hub + "/removal":       {},
		hub + "/removal/close": {},
		hub + "/reset-link":    {},
	} {
		b := newHubBackend()
		response := b.ask("POST", path, form)
		if response.StatusCode != http.StatusSeeOther {
			t.Errorf("%s: %d %s", path, response.StatusCode, read(t, response))
			continue
		}
		page, err := url.Parse("http://localhost:8080/portal/" + acme + path)
		if err != nil {
			t.Fatal(err)
		}
		to, err := page.Parse(response.Header.Get("Location"))
		if err != nil || to.Path != "/portal/"+acme+hub {
			t.Errorf("%s leads to %v, %v", path, to, err)
		}
		if strings.HasSuffix(path, "/pairing") &&
			(to.Query().Get("pairing") == "" || *b.code != "12345") {
			t.Errorf("pairing leads to %v with the code %v", to, b.code)
		}
		if b.origin.At.IsZero() == (len(b.sent)+len(b.labeled)+len(b.placed) > 0 || slices.Contains(b.done, "reset")) {
			t.Errorf("%s was done by %+v", path, b.origin)
		}
	}
	b := newHubBackend()
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
	if len(b.sent) != 1 || b.sent[0].OrgID != acme || b.sent[0].HubID != ownHub ||
		string(b.sent[0].Value) != "true" ||
		b.origin.Actor != (domain.Actor{Kind: domain.ActorMember, ID: "member"}) {
		t.Errorf("sent %+v by %+v", b.sent, b.origin)
	}
	b.ask("POST", hub+"/place", url.Values{"name": {" Lobby "}, "site": {"other"}})
	if change := b.placed[0]; *change.Name != "Lobby" || !change.SetName ||
		*change.SiteID != "other" ||
		change.HubID != ownHub ||
		change.OrgID != acme {
		t.Errorf("placed %+v", change)
	}
	b.ask("POST", device+"/label", url.Values{"name": {"Front door"}, "room": {""}})
	if change := b.labeled[0]; *change.Name != "Front door" || change.Room != nil ||
		!change.SetRoom {
		t.Errorf("labeled %+v", change)
	}
	b.ask("POST", device+"/label", url.Values{"name": {b.devices[0].Name}, "room": {"Hall"}})
	if change := b.labeled[1]; change.Name != nil || *change.Room != "Hall" {
		t.Errorf("the reported name became one's own: %+v", change)
	}
}

// A member without a managing role sees everything and sends commands, and changes nothing else.
func TestMemberPermissions(t *testing.T) {
	t.Parallel()
	b := newHubBackend()
	b.role = domain.RoleMember
	hub, device := "/hubs/"+string(ownHub), "/hubs/"+string(ownHub)+"/devices/1"
	for _, action := range []string{
		hub + "/place", hub + "/pairing", hub + "/removal", hub + "/reset-link", device + "/label",
		device + "/forget",
	} {
		if response := b.ask("POST", action, url.Values{}); response.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", action, response.StatusCode)
		}
	}
	command := url.Values{
		"key":             {"lock"},
		"endpoint":        {"0"},
		"value":           {"true"},
		"idempotency_key": {"once"},
	}
	if response := b.ask("POST", device+"/commands", command); response.StatusCode != http.StatusSeeOther ||
		len(b.sent) != 1 {
		t.Errorf("a command: %d", response.StatusCode)
	}
	if page := read(t, b.ask("GET", hub, nil)); strings.Contains(page, "Open pairing") ||
		!strings.Contains(page, "Set") {
		t.Error("the page offers what a member may not do")
	}
}

// A script gets a status and JSON in place of a page.
func TestActionsFromScripts(t *testing.T) {
	t.Parallel()
	b := newHubBackend()
	path := "/hubs/" + string(ownHub) + "/devices/1/commands"
	command := url.Values{
		"key":             {"lock"},
		"endpoint":        {"0"},
		"value":           {"true"},
		"idempotency_key": {"once"},
	}
	if response := b.ask(
		"POST", path, command, "Accept", "application/json",
	); response.StatusCode != http.StatusNoContent {
		t.Errorf("a command: %d", response.StatusCode)
	}
	b.fails = domain.Errorf(domain.CodeHubOffline, "the hub is not connected")
	response := b.ask("POST", path, command, "Accept", "application/json")
	if text := read(t, response); response.StatusCode != http.StatusServiceUnavailable ||
		text != `{"message":"The hub is not connected."}`+"\n" {
		t.Errorf("a hub that is offline: %d %s", response.StatusCode, text)
	}
	command.Set("value", "perhaps")
	if response := b.ask(
		"POST", path, command, "Accept", "application/json",
	); response.StatusCode != http.StatusBadRequest {
		t.Errorf("what is no value: %d", response.StatusCode)
	}
}

// A rejected form about a hub is shown on its page with what was typed. It used to be an error
// page.
func TestRejectedHubForms(t *testing.T) {
	t.Parallel()
	hub, device := "/hubs/"+string(ownHub), "/hubs/"+string(ownHub)+"/devices/1"
	long := strings.Repeat("x", 201)
	for path, try := range map[string]struct {
		form url.Values
		says []string
	}{
		hub + "/pairing": {
			url.Values{"setup_code": {"0<"}},
			[]string{
				`id="pairing-problem">Setup code must be shorter.<`, `value="0&lt;" autofocus`,
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
			url.Values{"name": {long}, "site": {"site"}},
			[]string{`id="place-problem">`, long, `value="site" selected`},
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
		b := newHubBackend()
		b.rejects = domain.Errorf(domain.CodeInvalidRequest, "setup_code must be shorter")
		response := b.ask("POST", path, try.form)
		page := read(t, response)
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
		for _, want := range try.says {
			if !strings.Contains(page, want) {
				t.Errorf("%s does not say %q: %s", path, want, page)
			}
		}
		checkOrgPage(t, path, page)
		// Its address stands in the browser's bar, and under it the page's own links.
		to := b.ask("GET", path+"?hours=6", nil).Header.Get("Location")
		if path != hub+"/reset-link" &&
			(!strings.HasSuffix(to, "?hours=6") || !strings.Contains(to, hub)) {
			t.Errorf("%s leads to %q", path, to)
		}
	}
	if page := read(t, newHubBackend().ask("GET", device+"/card?up=5", nil)); !strings.Contains(
		page, `href="../../../../../`+acme+device+`"`,
	) {
		t.Errorf("a part of the page of a refused form does not fit there: %s", page)
	}
	b := newHubBackend()
	b.fails = domain.Errorf(domain.CodeHubOffline, "the hub is not connected")
	if response := b.ask(
		"POST", device+"/forget", url.Values{},
	); response.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a device's page that cannot be shown either: %d", response.StatusCode)
	} else if page := read(t, response); !strings.Contains(page, `href="../../../../../`+acme+hub+`"`) {
		t.Errorf("there is no way back: %s", page)
	}
	if page := read(t, b.ask("GET", "/hubs/"+string(foreignHub), nil)); strings.Contains(
		page, "Back to the hub",
	) {
		t.Error("a hub of others has a way to it")
	}
}

// The page of a hub that does not answer is shown without devices, and with the reason.
func TestHubDoesNotAnswer(t *testing.T) {
	t.Parallel()
	for code, says := range map[domain.Code]string{
		domain.CodeHubOffline: "The hub is offline", domain.CodeHubTimeout: "Took too long",
		domain.CodeHubUnavailable: "Took too long",
	} {
		b := newHubBackend()
		b.fails = domain.Errorf(code, "took too long")
		response := b.ask("GET", "/hubs/"+string(ownHub), nil)
		if page := read(t, response); response.StatusCode != http.StatusOK ||
			!strings.Contains(page, says) ||
			!strings.Contains(page, "2.4.1") {
			t.Errorf("%s: %d", code, response.StatusCode)
		}
	}
	b := newHubBackend()
	b.fails = errors.New("postgres is away")
	if response := b.ask(
		"GET", "/hubs/"+string(ownHub), nil,
	); response.StatusCode != http.StatusInternalServerError {
		t.Errorf("a fault: %d", response.StatusCode)
	}
}

// A page's stream requires membership and the session's form token, and ends when the session ends.
func TestPageStream(t *testing.T) {
	t.Parallel()
	b := newHubBackend()
	server := httptest.NewServer(b.serve())
	defer server.Close()
	post := func(token, session string) *http.Response {
		r, err := http.NewRequestWithContext(
			t.Context(),
			"POST",
			server.URL+"/portal/"+acme+"/stream",
			strings.NewReader(url.Values{
				"form_token": {token}, "positions": {string(ownHub) + " cursor\nnonsense\n"},
			}.Encode()),
		)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: "hubcloud_session", Value: session})
		client := http.Client{
			Transport:     server.Client().Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	forged, nobody := post("x", "session"), post(formToken, "x")
	defer forged.Body.Close()
	defer nobody.Body.Close()
	if forged.StatusCode != http.StatusForbidden || nobody.StatusCode != http.StatusSeeOther {
		t.Errorf("forged %d, of nobody %d", forged.StatusCode, nobody.StatusCode)
	}
	stream := post(formToken, "session")
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	var text []string
	for len(text) < 5 && lines.Scan() {
		text = append(text, lines.Text())
	}
	if stream.Header.Get("Content-Type") != "text/event-stream" || len(text) < 5 ||
		text[0] != "event: hub.portal_positions" ||
		text[1] != `data: {"`+string(ownHub)+`":"position"}` ||
		text[3] != "event: hub.portal_states" {
		t.Errorf("the stream says %q", text)
	} // Who signed out was shown what happens until the next keepalive, half a minute later.
	close(b.signedOut)
	for lines.Scan() {
		text = append(text, lines.Text())
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream broke off: %v", err)
	}
}
