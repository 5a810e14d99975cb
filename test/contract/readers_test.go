package contract

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// listedReader is a reader as the API lists it.
type listedReader struct {
	ID, Name, Position, State string
	HubID                     *string `json:"hub_id"`
	Part                      *string
	EventsBehind              *int   `json:"events_behind"`
	SecondsBehind             int    `json:"seconds_behind"`
	ExpiresIn                 int    `json:"expires_in"`
	LastSeenAt                string `json:"last_seen_at"`
}

// readersOf returns the organization's readers with a name, read in pages of two.
func readersOf(client *harness.Tenant, name string) (found []listedReader) {
	client.T.Helper()
	after := ""
	for more := true; more; {
		var page struct {
			Data    []listedReader
			HasMore bool `json:"has_more"`
		}
		client.Get("/readers?limit=2"+after).JSON(client.T, &page)
		for _, r := range page.Data {
			if r.Name == name {
				found = append(found, r)
			}
			after = "&starting_after=" + url.QueryEscape(r.ID)
		}
		more = page.HasMore
	}
	return found
}

// readers tests what tells a reader how far it is behind, which is an addition to the contract.
func readers(t *testing.T, c *harness.Target) {
	tenant, foreign := c.Tenant("Readers"), c.Tenant("Readers of others")

	t.Run("events behind", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 10)
		hub.WaitAck("log-1", 10)
		// Records of commands share the log, and do not count.
		_, _ = client.Try(http.MethodPost, commandPath(hub.ID, 1), `{"key":"lock","value":true}`)
		hub.EventsFrom("log-1", 11, 20)
		hub.WaitAck("log-1", 20)
		total := len(client.AllEvents(hub.ID, ""))
		for _, path := range []string{
			"/hubs/" + hub.ID + "/events?limit=3", "/events?limit=3&hub_id=" + hub.ID,
		} {
			after, read := "", 0
			for more := true; more; {
				answer := client.Get(path + after)
				var page harness.Page
				answer.JSON(t, &page)
				read += len(page.Data)
				if got := answer.Header.Get("Events-Behind"); got != strconv.Itoa(total-read) {
					t.Errorf("%s: Events-Behind after %d of %d events is %q", path, read, total, got)
				}
				if got := answer.Header.Get("Events-Expire-In"); got != "" {
					t.Errorf("%s: Events-Expire-In is %q long before the retention", path, got)
				}
				after, more = "&after="+page.NextCursor, page.HasMore
			}
			waited := client.Get(path + after + "&wait=1")
			if got := waited.Header.Get("Events-Behind"); got != "0" {
				t.Errorf("long-poll of %s at the end: Events-Behind is %q, want 0", path, got)
			}
		}
		if found := readersOf(client, ""); len(found) != 0 {
			t.Errorf("readers without a name are listed: %+v", found)
		}
	})

	t.Run("list", func(t *testing.T) {
		tenant := c.Tenant("Listed readers")
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 5)
		hub.WaitAck("log-1", 5)
		total := len(client.AllEvents(hub.ID, ""))
		read := func(path string) harness.Page {
			t.Helper()
			var page harness.Page
			client.Get(path, "Reader", "list").JSON(t, &page)
			return page
		}
		onHub := read("/hubs/" + hub.ID + "/events?limit=2")
		onFeed := read("/events?limit=500&hub_id=" + hub.ID)
		onPart := read("/events?limit=500&part=2/3")
		want := func(state string, behind ...int) {
			t.Helper()
			found := readersOf(client, "list")
			if len(found) != 3 {
				t.Fatalf("got %+v, want three readers", found)
			}
			for i, position := range []string{onFeed.NextCursor, onPart.NextCursor, onHub.NextCursor} {
				r := found[i]
				if r.Position != position || r.State != state || r.EventsBehind == nil ||
					*r.EventsBehind != behind[i] || r.ExpiresIn <= 0 || r.LastSeenAt == "" {
					t.Errorf("got reader %+v, want %s at %s, %d behind", r, state, position, behind[i])
				}
				if (r.HubID != nil) != (i == 2) || (r.Part != nil) != (i == 1) {
					t.Errorf("got reader %+v, want the feed, its part 2/3, and the hub", r)
				}
			}
		}
		want("ok", 0, 0, total-2)
		// Readers that have stopped fall behind.
		hub.EventsFrom("log-1", 6, 9)
		hub.WaitAck("log-1", 9)
		want("ok", 4, 4, total+2)
		if found := readersOf(foreign.For(t), "list"); len(found) != 0 {
			t.Errorf("another organization sees %+v", found)
		}
		// An error moves nothing.
		client.Rejected(
			http.MethodGet, "/events?after=garbage", nil, "invalid_request", "Reader", "list",
		)
		want("ok", 4, 4, total+2)
	})

	t.Run("streams", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		start := client.Head(hub.ID)
		hubStream := client.Stream("/hubs/"+hub.ID+"/events/stream", start, "Reader", "stream")
		feedStream := client.Stream("/events/stream?hub_id="+hub.ID, "", "Reader", "stream")
		<-hubStream.Messages
		<-feedStream.Messages
		hub.EventsFrom("log-1", 1, 3)
		hub.WaitAck("log-1", 3)
		ids := map[string]bool{}
		for _, s := range []*harness.Stream{hubStream, feedStream} {
			last := ""
			for number := 0; number < 3; {
				m := s.Next(t, time.Minute)
				if m.Event == "channel.observed" {
					number++
				}
				last = m.ID
			}
			ids[last] = true
		}
		streamstest.Eventually(t, "both streams are listed with their last ids", func() bool {
			found := readersOf(client, "stream")
			return len(found) == 2 && ids[found[0].Position] && ids[found[1].Position] &&
				*found[0].EventsBehind == 0 && *found[1].EventsBehind == 0
		})
		hubStream.Close()
		feedStream.Close()
		<-hubStream.Ended
		<-feedStream.Ended
		hub.EventsFrom("log-1", 4, 10)
		hub.WaitAck("log-1", 10)
		streamstest.Eventually(t, "ended streams fall behind", func() bool {
			found := readersOf(client, "stream")
			return len(found) == 2 && *found[0].EventsBehind > 0 && *found[1].EventsBehind > 0
		})
	})

	t.Run("bad names and scopes", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		for _, path := range []string{
			"/events", "/events/stream", "/hubs/" + hub.ID + "/events",
			"/hubs/" + hub.ID + "/events/stream",
		} {
			for _, name := range []string{"a\tb", strings.Repeat("x", 65)} {
				rejection := client.Rejected(
					http.MethodGet, path, nil, "invalid_request", "Reader", name,
				)
				if !strings.HasPrefix(rejection.Message, "Reader: ") {
					t.Errorf("%s with the name %q: got %q, want the header's name", path, name, rejection.Message)
				}
			}
		}
		for query, parameter := range map[string]string{
			"limit=0": "limit", "limit=51": "limit", "starting_after=": "starting_after",
			"starting_after=x": "starting_after",
		} {
			rejection := client.Rejected(http.MethodGet, "/readers?"+query, nil, "invalid_request")
			if !strings.HasPrefix(rejection.Message, parameter) {
				t.Errorf("%s: got %q, want the parameter's name", query, rejection.Message)
			}
		}
		_, key := c.OwnService().For(t).Key(tenant.Org, "hubs:read")
		harness.NewClient(t, c.Base, key).Rejected(
			http.MethodGet, "/readers", nil, "insufficient_scope",
		)
	})
}
