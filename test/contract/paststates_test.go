package contract

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// pastStates tests `GET /hubs/{hub_id}/state`: what the devices of a hub had last reported at an
// instant.
func pastStates(t *testing.T, c *harness.Target) {
	tenant, foreign := c.Tenant("Past states"), c.Tenant("Foreign past states")
	hub := c.VirtualHub(tenant, virtualhub.Config{})
	path := "/hubs/" + hub.ID() + "/state"
	lock := virtualhub.ChannelRef{Key: "lock"}
	at := func(instant string) map[string]any {
		t.Helper()
		if instant != "" {
			instant = "?at=" + url.QueryEscape(instant)
		}
		return tenant.Get(path + instant).Object(t)
	}
	// find returns the item of a channel of device 1, or nil.
	find := func(past map[string]any, key string) map[string]any {
		t.Helper()
		for _, item := range past["data"].([]any) {
			item := item.(map[string]any)
			if item["device"].(map[string]any)["id"] == 1.0 &&
				item["channel"].(map[string]any)["key"] == key {
				return item
			}
		}
		return nil
	}
	locked := func(past map[string]any) any {
		t.Helper()
		if item := find(past, "lock"); item != nil {
			return item["channel"].(map[string]any)["value"]
		}
		return nil
	}

	// The service asks the hub by itself, so devices that have reported nothing are known.
	var asked map[string]any
	// A busy hub that does not answer for all its devices is asked again, with longer pauses.
	streamstest.EventuallyWithin(t, 4*time.Minute, "the hub was asked", func() bool {
		asked = at("")
		return asked["certain"] == true
	})
	devices := tenant.Get("/hubs/" + hub.ID() + "/devices").Object(t)["data"].([]any)
	listed := 0
	for _, device := range devices {
		listed += len(device.(map[string]any)["channels"].([]any))
	}
	if got := asked["data"].([]any); len(got) != listed || listed == 0 {
		t.Errorf("state: got %d channels, want the %d of the devices", len(got), listed)
	}
	item := find(asked, "lock")
	if asked["hub_id"] != hub.ID() || item["basis"] != "read" || item["certain"] != true {
		t.Errorf("past state: got %v of hub %v, want basis read, certain", item, asked["hub_id"])
	}

	// Each instant has what was stored up to it.
	report := func(value bool) (stored string) {
		t.Helper()
		harness.Must(t, hub.Report(1, lock, value))
		streamstest.Eventually(t, "the report is stored", func() bool {
			past := at("")
			stored = past["at"].(string)
			item := find(past, "lock")
			return item["basis"] == "event" && locked(past) == value
		})
		return stored
	}
	before := asked["known_from"].(string)
	first := report(false)
	second := report(true)
	for instant, want := range map[string]any{first: false, second: true, "": true} {
		if got := locked(at(instant)); got != want {
			t.Errorf("lock at %q: got %v, want %v", instant, got, want)
		}
	}
	if past := at(before); past["certain"] != true || find(past, "lock")["basis"] != "read" {
		t.Errorf("at known_from: got %v, want the hub's answer", past)
	}
	long, err := time.Parse(time.RFC3339, before)
	harness.Must(t, err)
	if past := at(long.Add(-time.Hour).Format(time.RFC3339)); past["certain"] != false {
		t.Errorf("an hour before known_from: got %v, want certain false", past)
	}
	// A name that is set now is shown for every instant.
	tenant.Patch("/hubs/"+hub.ID()+"/devices/1", map[string]any{"name": "Gate"})
	if got := find(at(first), "lock")["device"].(map[string]any)["name"]; got != "Gate" {
		t.Errorf("name: got %v, want Gate", got)
	}

	for name, query := range map[string]string{
		"no timestamp": "yesterday", "a date": "2026-01-02", "empty": "",
		"in the future":            time.Now().Add(time.Hour).Format(time.RFC3339),
		"older than the retention": time.Now().Add(-25 * time.Hour).Format(time.RFC3339),
	} {
		rejected := tenant.Rejected(
			http.MethodGet, path+"?at="+url.QueryEscape(query), nil, "invalid_request",
		)
		if !strings.HasPrefix(rejected.Message, "at: ") {
			t.Errorf("%s: got %q, want a message about at", name, rejected.Message)
		}
	}
	foreign.Rejected(http.MethodGet, path, nil, "not_found")
}
