package contract

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// orgFeed tests the feed of an organization, which is an addition to the contract: the events of
// all its hubs, by the rules of a hub's own feed.
func orgFeed(t *testing.T, c *harness.Target) {
	tenant, foreign := c.Tenant("Organization feed"), c.Tenant("Another organization")

	t.Run("pages", func(t *testing.T) {
		client := tenant.For(t)
		hubs := []*harness.RawHub{c.For(t).Online(tenant), c.For(t).Online(tenant)}
		other := c.For(t).Online(foreign)
		for _, hub := range append(slices.Clone(hubs), other) {
			hub.EventsFrom("log-1", 1, 30)
			hub.WaitAck("log-1", 30)
		}
		filter := "&hub_id=" + hubs[0].ID + "&hub_id=" + hubs[1].ID + "&hub_id=" + other.ID
		for _, limit := range []int{1, 7, 500} {
			got, after := map[string][]harness.Event{}, ""
			for {
				page := orgEvents(client, after, filter+"&limit="+strconv.Itoa(limit))
				for _, e := range page.Data {
					got[e.HubID] = append(got[e.HubID], e)
				}
				if page.HasMore && len(page.Data) != limit || page.NextCursor == "" {
					t.Fatalf("pages of %d: got %d events and more", limit, len(page.Data))
				}
				after = page.NextCursor
				if !page.HasMore {
					break
				}
			}
			if len(got) != len(hubs) {
				t.Errorf("pages of %d: got events of %d hubs, want %d", limit, len(got), len(hubs))
			}
			for _, hub := range hubs {
				// The same events with the same cursors, in the order of the hub's log.
				want := client.AllEvents(hub.ID, "")
				if !slices.EqualFunc(got[hub.ID], want, func(a, b harness.Event) bool {
					return a.Cursor == b.Cursor && string(a.Data) == string(b.Data)
				}) {
					t.Errorf(
						"pages of %d: hub %s: got %s, want %s", limit, hub.ID,
						harness.FormatEvents(got[hub.ID]), harness.FormatEvents(want),
					)
				}
			}
		}
	})

	t.Run("filters", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 3)
		hub.WaitAck("log-1", 3)
		of := "&hub_id=" + hub.ID
		for query, want := range map[string]int{
			"&type=channel.*": 3, "&type=channel.observed&type=x": 3, "&type=device.*": 0,
			"&part=1/1": 3, "&site_id=nowhere": 0, "&hub_id=" + noHub: 3,
		} {
			page := orgEvents(client, "", of+query)
			observed := slices.DeleteFunc(page.Data, func(e harness.Event) bool {
				return e.Type != "channel.observed"
			})
			if len(observed) != want {
				t.Errorf("%s: got %d events, want %d", query, len(observed), want)
			}
			// The position of a filtered page is after what was filtered out.
			if rest := orgEvents(client, page.NextCursor, of); len(rest.Data) != 0 {
				t.Errorf("%s: after the page got %s", query, harness.FormatEvents(rest.Data))
			}
		}
		parts := 0
		for part := 1; part <= 4; part++ {
			parts += len(orgEvents(client, "", of+"&type=channel.*&part="+strconv.Itoa(part)+"/4").Data)
		}
		if parts != 3 {
			t.Errorf("the parts together have %d events, want 3", parts)
		}
	})

	t.Run("wait", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		of := "&hub_id=" + hub.ID
		start := orgEvents(client, "", of)
		answered := make(chan harness.Answer, 1)
		go func() {
			answer, err := client.Try(
				http.MethodGet, "/events?wait=60&type=channel.*&after="+start.NextCursor+of, nil,
			)
			if err != nil {
				t.Error(err)
			}
			answered <- answer
		}()
		hub.EventsFrom("log-1", 1, 1)
		select {
		case answer := <-answered:
			var page harness.Page
			if answer.JSON(t, &page); len(page.Data) != 1 {
				t.Errorf("long poll: got %s, want one event", answer.Body)
			}
		case <-time.After(time.Minute):
			t.Fatal("long poll: no answer after a new event")
		}
	})

	t.Run("stream", func(t *testing.T) {
		client := tenant.For(t)
		hubs := []*harness.RawHub{c.For(t).Online(tenant), c.For(t).Online(tenant)}
		path := "/events/stream?type=channel.*&hub_id=" + hubs[0].ID + "&hub_id=" + hubs[1].ID
		s := client.Stream(path, "")
		if position := <-s.Messages; position.ID == "" || position.Data != "" {
			t.Fatalf("first block: got %+v, want a position", position)
		}
		sent := []uint64{0, 0}
		var ids []string
		send := func(n int) {
			t.Helper()
			sent[n]++
			hubs[n].EventsFrom("log-1", sent[n], sent[n])
			hubs[n].WaitAck("log-1", sent[n])
		}
		expect := func(s *harness.Stream, n int, number uint64) harness.Message {
			t.Helper()
			m := s.Next(t, time.Minute)
			var e harness.Event
			if err := json.Unmarshal([]byte(m.Data), &e); err != nil {
				t.Fatalf("data %q: %v", m.Data, err)
			}
			if m.Event != e.Type || e.HubID != hubs[n].ID || m.ID == e.Cursor || m.ID == "" ||
				string(e.Observed().Value) != strconv.FormatUint(number, 10) {
				t.Fatalf("stream: got %+v, want event %d of %s", m, number, hubs[n].ID)
			}
			return m
		}
		for i := range 6 {
			send(i % 2)
			ids = append(ids, expect(s, i%2, sent[i%2]).ID)
		}
		// "Last-Event-ID": the very next event of each hub follows, from the id of a frame and from
		// the next_cursor of a page.
		for i, id := range ids[:5] {
			resumed := client.Stream(path, id)
			for next := i + 1; next < 6; next++ {
				expect(resumed, next%2, uint64(next/2+1))
			}
			resumed.Close()
			if page := orgEvents(
				client, id, "type=channel.*&hub_id="+hubs[0].ID+"&hub_id="+hubs[1].ID,
			); len(page.Data) != 5-i {
				t.Errorf("page after event %d: got %d events, want %d", i+1, len(page.Data), 5-i)
			}
		}
		// A reset of one hub does not end the stream. It is an event, which every reader of the
		// feed gets at once, even one that has read everything; the new log's events follow.
		all := client.Stream("/events/stream?hub_id="+hubs[0].ID, "")
		if position := <-all.Messages; position.ID == "" || position.Data != "" {
			t.Fatalf("first block: got %+v, want a position", position)
		}
		hubs[0].Hello("log-2", 1, 1)
		hubs[0].WaitAck("log-2", 0)
		var reset harness.Event
		m := all.Next(t, time.Minute)
		if json.Unmarshal([]byte(m.Data), &reset) != nil || reset.Type != "hub.log_reset" ||
			reset.HubID != hubs[0].ID || !sameJSON(reset.Data, []byte(`{"reason":"factory_reset"}`)) {
			t.Errorf("got %+v, want hub.log_reset of %s", m, hubs[0].ID)
		}
		hubs[0].EventsFrom("log-2", 1, 1)
		hubs[0].WaitAck("log-2", 1)
		expect(s, 0, 1)
		send(1)
		expect(s, 1, sent[1])
		// A reader that had not read the former log has a gap in its place.
		lost := client.Stream(path, ids[0])
		for {
			m := lost.Next(t, time.Minute)
			if m.Event != "feed.gap" {
				continue
			}
			var e harness.Event
			if err := json.Unmarshal([]byte(m.Data), &e); err != nil || e.HubID != hubs[0].ID {
				t.Errorf("got %+v, %v, want a gap of %s", m, err, hubs[0].ID)
			}
			break
		}
	})

	t.Run("scope", func(t *testing.T) {
		_, key := c.OwnService().For(t).Key(tenant.Org, "hubs:read")
		for _, path := range []string{"/events", "/events/stream"} {
			harness.NewClient(t, c.Base, key).Rejected(
				http.MethodGet, path, nil, "insufficient_scope",
			)
			harness.NewClient(t, c.Base, "x").Rejected(http.MethodGet, path, nil, "unauthenticated")
		}
	})

	t.Run("bad parameters", func(t *testing.T) {
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 1)
		hub.WaitAck("log-1", 1)
		position := orgEvents(client, "", "").NextCursor
		cursor := client.Events(hub.ID, "", 1, 0).NextCursor
		for query, parameter := range map[string]string{
			"limit=0": "limit", "limit=501": "limit", "wait=61": "wait", "wait=": "wait",
			"after=garbage": "after", "after=": "after", "after=" + cursor: "after",
			"after=" + position + "x": "after", "after=" + position[1:]: "after",
			"hub_id=": "hub_id", "hub_id=x": "hub_id", "hub_id=" + hub.ID + "&hub_id=": "hub_id",
			"site_id=": "site_id", "type=": "type", "type=*": "type", "type=a*b": "type",
			"type=" + strings.Repeat("x", 101): "type", "part=": "part", "part=1": "part",
			"part=0/8": "part", "part=9/8": "part", "part=1/257": "part", "part=1/2/3": "part",
			"part=-1/8": "part", "part=1/2&part=1/2": "part",
			strings.Repeat("&type=x", 101): "type",
		} {
			rejection := client.Rejected(http.MethodGet, "/events?"+query, nil, "invalid_request")
			if !strings.HasPrefix(rejection.Message, parameter) {
				t.Errorf("%s: got %q, want the parameter's name", query, rejection.Message)
			}
		}
		client.Rejected(
			http.MethodGet, "/hubs/"+hub.ID+"/events?after="+position, nil, "invalid_request",
		)
		for _, query := range []string{"part=3/2", "type=*", "hub_id=x", "after=garbage"} {
			client.Rejected(http.MethodGet, "/events/stream?"+query, nil, "invalid_request")
		}
	})
}

// orgEvents reads one page of the organization's feed.
func orgEvents(client *harness.Tenant, after, query string) (page harness.Page) {
	client.T.Helper()
	path := "/events?" + query
	if after != "" {
		path += "&after=" + url.QueryEscape(after)
	}
	client.Get(path).JSON(client.T, &page)
	return page
}
