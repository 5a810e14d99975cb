package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// states tests `GET /state`: what the channels of all devices of the organization last reported.
func states(t *testing.T, c *harness.Target) {
	tenant, foreign := c.Tenant("States"), c.Tenant("Foreign states")
	hub, other := c.VirtualHub(tenant, virtualhub.Config{}), c.VirtualHub(tenant, virtualhub.Config{})
	stranger := c.VirtualHub(foreign, virtualhub.Config{})
	lock := virtualhub.ChannelRef{Key: "lock"}
	temperature := virtualhub.ChannelRef{Key: "temperature"}
	report := func(h *virtualhub.Hub, device int64, ref virtualhub.ChannelRef, value any) {
		t.Helper()
		harness.Must(t, h.Report(device, ref, value))
	}
	report(hub, 1, lock, false)
	report(hub, 11, temperature, 19.5)
	report(other, 1, lock, false)
	report(stranger, 1, lock, false)
	list := func(client *harness.Tenant, query string) []map[string]any {
		client.T.Helper()
		answer := client.Get("/state" + query).Object(client.T)
		return data(t, answer)
	}
	// find returns the item of a channel, or nil.
	find := func(client *harness.Tenant, hub string, device int64, key string) map[string]any {
		client.T.Helper()
		for _, item := range list(client, "?hub_id="+hub+"&key="+key) {
			if item["device"].(map[string]any)["id"] == float64(device) {
				return item
			}
		}
		return nil
	}
	value := func(item map[string]any) any {
		if item == nil {
			return nil
		}
		return item["channel"].(map[string]any)["value"]
	}
	streamstest.Eventually(t, "the reported states", func() bool {
		return value(find(tenant, hub.ID(), 11, "temperature")) == 19.5 &&
			value(find(tenant, other.ID(), 1, "lock")) == false &&
			value(find(foreign, stranger.ID(), 1, "lock")) == false
	})

	t.Run("form", func(t *testing.T) {
		item := find(tenant.For(t), hub.ID(), 1, "lock")
		if item["site_id"] != tenant.Site ||
			item["connection"].(map[string]any)["status"] != "online" {
			t.Errorf("state: got %v, want the site %s, online", item, tenant.Site)
		}
	})

	t.Run("other organizations", func(t *testing.T) {
		for _, item := range list(tenant.For(t), "?limit=500") {
			if item["hub_id"] == stranger.ID() {
				t.Errorf("list: got another organization's %v", item)
			}
		}
		if got := list(tenant.For(t), "?hub_id="+stranger.ID()); len(got) > 0 {
			t.Errorf("another organization's hub: got %v, want nothing", got)
		}
		if got := list(tenant.For(t), "?site_id="+foreign.Site); len(got) > 0 {
			t.Errorf("another organization's site: got %v, want nothing", got)
		}
	})

	t.Run("filters", func(t *testing.T) {
		client := tenant.For(t)
		for query, want := range map[string]func(channel map[string]any, item map[string]any) bool{
			"?hub_id=" + other.ID(): func(_, item map[string]any) bool {
				return item["hub_id"] == other.ID()
			},
			"?key=lock":               func(c, _ map[string]any) bool { return c["key"] == "lock" },
			"?value=false":            func(c, _ map[string]any) bool { return c["value"] == false },
			"?status=synchronized":    func(c, _ map[string]any) bool { return c["status"] == "synchronized" },
			"?available=true":         func(c, _ map[string]any) bool { return c["available"] == true },
			"?site_id=" + tenant.Site: func(_, item map[string]any) bool { return item["site_id"] == tenant.Site },
			"?observed_before=" + url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339)): func(
				c, _ map[string]any,
			) bool {
				return c["observed_at"] != nil
			},
		} {
			found := list(client, query)
			if len(found) == 0 {
				t.Errorf("%s: got nothing", query)
			}
			for _, item := range found {
				if !want(item["channel"].(map[string]any), item) {
					t.Errorf("%s: got %v", query, item)
				}
			}
		}
		for _, query := range []string{
			"?available=false", "?key=nothing", "?observed_before=2001-01-01T00:00:00Z",
			"?key=temperature&value=true",
		} {
			if found := list(client, query); len(found) > 0 {
				t.Errorf("%s: got %v, want nothing", query, found)
			}
		}
	})

	t.Run("pages", func(t *testing.T) {
		client := tenant.For(t)
		pages := func() string {
			var ids []string
			for after := ""; ; {
				query := "?limit=5"
				if after != "" {
					query += "&starting_after=" + url.QueryEscape(after)
				}
				answer := client.Get("/state" + query).Object(t)
				for _, item := range data(t, answer) {
					after = item["id"].(string)
					ids = append(ids, after)
				}
				if answer["has_more"] != true {
					return strings.Join(ids, " ")
				}
			}
		}
		whole := func() string {
			var ids []string
			for _, item := range list(client, "?limit=500") {
				ids = append(ids, item["id"].(string))
			}
			return strings.Join(ids, " ")
		}
		// Devices are read after their hub connects: only the pages of a list that stands still are the list.
		streamstest.Eventually(t, "small pages as the whole list, which stands still", func() bool {
			before := whole()
			return pages() == before && whole() == before && strings.Count(before, " ") >= 2
		})
	})

	t.Run("list, then follow", func(t *testing.T) {
		// "Its Event-Cursor is a position of the feed: list, then follow, without a gap."
		client := tenant.For(t)
		reported := make(chan error, 1)
		const last = 300
		go func() {
			var err error
			for n := 100; n <= last && err == nil; n++ {
				err = hub.Report(11, temperature, n)
			}
			reported <- err
		}()
		for listed := 0.0; listed < last; {
			resp := client.Get("/state?key=temperature&hub_id=" + hub.ID())
			for _, item := range data(t, resp.Object(t)) {
				if item["device"].(map[string]any)["id"] == 11.0 { // other devices have temperatures too
					listed, _ = value(item).(float64)
				}
			}
			position := resp.Header.Get("Event-Cursor")
			if position == "" {
				t.Fatal("GET /state: got no Event-Cursor")
			}
			followed := max(listed, 99)
			for more := true; more; {
				page := orgEvents(client, position, "&limit=500&type=channel.observed&hub_id="+hub.ID())
				for _, e := range page.Data {
					n := observedNumber(e, 11, "temperature")
					if n > followed+1 {
						t.Fatalf("listed %v, then got the events up to %v and %v: one is missing",
							listed, followed, n)
					}
					followed = max(followed, n)
				}
				position, more = page.NextCursor, page.HasMore
			}
		}
		harness.Must(t, <-reported)
	})

	t.Run("bad parameters", func(t *testing.T) {
		client := tenant.For(t)
		for name, bad := range map[string][]string{
			"limit": {"0", "501", "x"}, "starting_after": {"x", hub.ID(), hub.ID() + "/x/0/lock"},
			"value": {"1", "yes"}, "available": {"True"}, "status": {"done"},
			"observed_before": {"yesterday", "2026-01-02"},
		} {
			for _, text := range bad {
				path := fmt.Sprintf("/state?%s=%s", name, url.QueryEscape(text))
				rejected := client.Rejected(http.MethodGet, path, nil, "invalid_request")
				if !strings.HasPrefix(rejected.Message, name+":") {
					t.Errorf("GET %s: got %q, want the parameter's name", path, rejected.Message)
				}
			}
		}
	})

	t.Run("names and rooms", func(t *testing.T) {
		client := tenant.For(t)
		client.Patch(devicePath(hub.ID(), 1), `{"name":"Gate","room":"Yard"}`)
		got := find(client, hub.ID(), 1, "lock")["device"].(map[string]any)
		if got["name"] != "Gate" || got["room"] != "Yard" {
			t.Errorf("device after PATCH: got %v, want Gate in Yard", got)
		}
	})

	t.Run("commands", func(t *testing.T) {
		client := tenant.For(t)
		client.Command(devicePath(hub.ID(), 1)+"/commands", `{"key":"lock","value":true}`)
		streamstest.Eventually(t, "the outcome of the command", func() bool {
			got := find(client, hub.ID(), 1, "lock")["channel"].(map[string]any)
			return got["value"] == true && got["desired"] == true &&
				got["status"] == "synchronized" && got["desired_at"] != nil
		})
	})

	t.Run("offline hubs", func(t *testing.T) {
		client := tenant.For(t)
		other.Offline(true)
		streamstest.Eventually(t, "the hub is offline in the list", func() bool {
			got := find(client, other.ID(), 1, "lock")
			return got["connection"].(map[string]any)["status"] == "offline" && value(got) == false
		})
		report(other, 1, lock, true)
		other.Offline(false)
		streamstest.Eventually(t, "what the hub reported meanwhile", func() bool {
			return value(find(client, other.ID(), 1, "lock")) == true
		})
	})
}

// observedNumber returns the number that an event reports for a channel of a device, 0 if it is
// another event.
func observedNumber(e harness.Event, device int64, key string) float64 {
	var observed struct {
		Key   string
		Value any
	}
	if e.DeviceID == nil || *e.DeviceID != device ||
		json.Unmarshal(e.Data, &observed) != nil || observed.Key != key {
		return 0
	}
	n, _ := observed.Value.(float64)
	return n
}
