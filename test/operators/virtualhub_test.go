package operators

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

var (
	formToken = regexp.MustCompile(`name="form_token" value="([^"]*)"`)
	onceField = regexp.MustCompile(`name="once" value="([^"]*)"`)
)

// send sends a form of a page of an organization, with a site.
func (p *person) send(t *testing.T, org, page, action, site string) {
	t.Helper()
	_, text := p.get(p.portal + "/" + org + page)
	token, once := formToken.FindStringSubmatch(text), onceField.FindStringSubmatch(text)
	if token == nil {
		t.Fatalf("%s: got no form: %s", page, text)
	}
	form := url.Values{"form_token": token[1:], "site": {site}}
	if once != nil {
		form["once"] = once[1:]
	}
	if status := p.post(p.portal+"/"+org+action, form); status != http.StatusSeeOther {
		t.Fatalf("%s: got %d, want 303", action, status)
	}
}

func awaitVirtualHub(t *testing.T, api *harness.Client, hub string) {
	t.Helper()
	streamstest.Eventually(t, "the virtual hub is online and has devices", func() bool {
		answer, err := api.Do(http.MethodGet, "/hubs/"+hub+"/devices", nil)
		return err == nil && answer.Status == http.StatusOK && strings.Contains(string(answer.Body), `"lock"`)
	})
}

// TestVirtualHub begins a new organization with one click: it gets a site and a hub that the service
// runs, which answers like any hub, is there again after a restart, and is released like any hub.
func TestVirtualHub(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	const owner = "vera@example.org"
	org := s.CLI("org", "create", "--name", "New", "--owner-email", owner)[0]["org_id"].(string)
	_, key := s.Key(org, "hubs:read", "sites:read", "events:read", "hubs:command")
	api := harness.NewClient(t, s.Base(), key)
	vera := signIn(t, s, owner)
	hub := string(domain.VirtualHubID(org))
	send := func(page, action, site string) { vera.send(t, org, page, action, site) }
	online := func() { t.Helper(); awaitVirtualHub(t, api, hub) }
	hubs := func() int {
		var page struct{ Data []struct{ ID string } }
		api.Must(http.MethodGet, "/hubs", nil, http.StatusOK).JSON(t, &page)
		return len(page.Data)
	}
	send("", "/virtual-hub", "")
	online()
	_, text := vera.get(vera.portal + "/" + org + "/hubs/" + hub)
	if !strings.Contains(text, ">virtual<") || !strings.Contains(text, "Example site") {
		t.Errorf("got %s, want a hub that is marked as virtual, at a new site", text)
	}
	var sites struct{ Data []struct{ ID string } }
	api.Must(http.MethodGet, "/sites", nil, http.StatusOK).JSON(t, &sites)
	send("/sites", "/virtual-hub", sites.Data[0].ID)
	if got := hubs(); got != 1 {
		t.Errorf("asked twice: got %d hubs, want 1", got)
	}

	s.Stop()
	s.Begin()
	online()
	events := string(api.Must(http.MethodGet, "/hubs/"+hub+"/events?limit=500", nil, http.StatusOK).Body)
	if strings.Contains(events, "hub.log_reset") {
		t.Errorf("a restart: got %s, want the hub to go on where it was", events)
	}

	send("/hubs/"+hub+"/remove", "/hubs/"+hub+"/remove", "")
	if got := hubs(); got != 0 {
		t.Errorf("released: got %d hubs, want none", got)
	}
	streamstest.Eventually(t, "the data of the released hub is gone", func() bool {
		_, err := os.Stat(filepath.Join(s.Dir, "virtualhubs", hub))
		return os.IsNotExist(err)
	})
	send("", "/virtual-hub", sites.Data[0].ID)
	online()
	tryFleet(t, s)
}

// tryFleet runs hubs for a load test, and wants their rate.
func tryFleet(t *testing.T, s *harness.Service) {
	t.Helper()
	var lines []byte
	for _, hub := range s.Inventory(3) {
		line, err := json.Marshal(hub)
		harness.Must(t, err)
		lines = append(append(lines, line...), '\n')
	}
	file := filepath.Join(t.TempDir(), "inventory.json")
	harness.Must(t, os.WriteFile(file, lines, 0o600))
	out, errs, code := harness.RunBinary(
		t, "virtualhub", "fleet", "--enroll", s.Public(), "--inventory", file, "--rate", "20", "--batch", "5",
		"--for", "5s", "--every", "500ms",
	)
	acked, emitted := 0, 0
	_, ended, _ := strings.Cut(out, "ended: ")
	if _, err := fmt.Sscanf(ended, "%d events acknowledged of %d in", &acked, &emitted); err != nil || code != 0 ||
		acked == 0 || emitted > 20*3*10 || !strings.Contains(out, "3 of 3 hubs connected") {
		t.Errorf("got exit code %d and %s%s, want events of 3 hubs, 20 a second of each", code, out, errs)
	}
}

// A virtual hub whose replica is killed is run by another one, where it begins as after a factory
// reset.
func TestVirtualHubIsTakenOver(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	second := s.Replica()
	const owner = "nina@example.org"
	s.CLI("org", "create", "--name", "First", "--owner-email", owner)
	nina := signIn(t, s, owner)
	for { // the replicas divide the hubs
		org := s.CLI("org", "create", "--name", "New", "--owner-email", owner)[0]["org_id"].(string)
		_, key := s.Key(org, "hubs:read", "events:read")
		api := harness.NewClient(t, s.Base(), key)
		hub := string(domain.VirtualHubID(org))
		nina.send(t, org, "", "/virtual-hub", "")
		awaitVirtualHub(t, api, hub)
		if _, err := os.Stat(filepath.Join(second.Dir, "virtualhubs", hub)); err != nil {
			continue
		}
		second.Kill()
		streamstest.Eventually(t, "the other replica runs the hub", func() bool {
			answer, err := api.Do(http.MethodGet, "/hubs/"+hub+"/events?limit=500", nil)
			return err == nil && strings.Contains(string(answer.Body), "hub.log_reset")
		})
		awaitVirtualHub(t, api, hub)
		return
	}
}
