package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// stream tests "Stream rules".
func stream(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Stream")

	t.Run("messages", func(t *testing.T) {
		// "each message has id (the event cursor), event (the event type) and data (the whole event
		// envelope as one JSON line). Without Last-Event-ID the stream starts with the next new
		// event."
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 3)
		hub.WaitAck("log-1", 3)
		open := client.Stream("/hubs/"+hub.ID+"/events/stream", "")
		if got := open.Header.Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("Content-Type %q", got)
		}
		// The design, section 6: headers for proxies.
		if got := open.Header.Get("Cache-Control"); !strings.Contains(got, "no-cache") ||
			open.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("got header %v, want no-cache and X-Accel-Buffering no", open.Header)
		}
		// With positions=true: a block with only an id, so that nothing falls between two
		// connections to a quiet hub.
		position := <-open.Messages
		if position.ID == "" || position.Data != "" || position.Event != "" {
			t.Errorf("first block: got %+v, want only an id", position)
		}
		hub.EventsFrom("log-1", 4, 6)
		hub.WaitAck("log-1", 6)
		stored := client.AllEvents(hub.ID, "")
		var got []harness.Message
		for i := range 3 {
			message := open.Next(t, time.Minute)
			got = append(got, message)
			var envelope harness.Event
			if err := json.Unmarshal([]byte(message.Data), &envelope); err != nil {
				t.Fatalf("data %q: %v", message.Data, err)
			}
			want := stored[3+i]
			if message.ID != want.Cursor || message.Event != want.Type ||
				envelope.Cursor != want.Cursor ||
				!sameJSON(envelope.Data, want.Data) ||
				envelope.HubID != hub.ID {
				t.Errorf("stream: got %+v, want %+v as in the page", message, want)
			}
		}
		// "header Last-Event-ID (string cursor)": with it, after it.
		resumed := client.Stream("/hubs/"+hub.ID+"/events/stream", got[0].ID)
		if next := resumed.Next(t, time.Minute); next != got[1] {
			t.Errorf("got %+v, want %+v", next, got[1])
		}
		quiet := client.Stream("/hubs/"+hub.ID+"/events/stream", position.ID)
		if next := quiet.Next(t, time.Minute); next != got[0] {
			t.Errorf("got %+v, want %+v", next, got[0])
		}
		// Cursors of pages work for streams and the other way round.
		fromPage := client.Stream(
			"/hubs/"+hub.ID+"/events/stream", client.Events(hub.ID, "", 2, 0).NextCursor,
		)
		if next := fromPage.Next(t, time.Minute); next.ID != stored[2].Cursor {
			t.Errorf("got %+v, want %+v", next, stored[2])
		}
		if page := client.Events(hub.ID, got[1].ID, 100, 0); len(page.Data) != 1 ||
			page.Data[0].Cursor != got[2].ID {
			t.Errorf("page after message 2: got %+v, want only event %s", page, got[2].ID)
		}
	})

	t.Run("one line", func(t *testing.T) {
		// "data (the whole event envelope as one JSON line)", whatever format the hub used.
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		open := client.Stream("/hubs/"+hub.ID+"/events/stream", "")
		<-open.Messages
		event := harness.Numbered(1)
		event["type"], event["data"] = "weather.changed", map[string]any{
			"text": "a\nb\r\u2028c",
			"deep": []any{map[string]any{}},
		}
		payload, err := json.MarshalIndent(
			map[string]any{"log": "log-1", "events": []any{event}}, "\r\n\t", "\n  ",
		)
		harness.Must(t, err)
		hub.Publish("hub/"+hub.ID+"/events", payload)
		var envelope harness.Event
		if m := open.Next(t, time.Minute); json.Unmarshal([]byte(m.Data), &envelope) != nil ||
			!sameJSON(envelope.Data, []byte(`{"text":"a\nb\r\u2028c","deep":[{}]}`)) {
			t.Errorf("got %+v, want the data on one line", m)
		}
	})

	t.Run("no such hub", func(t *testing.T) {
		tenant.For(t).Rejected(http.MethodGet, "/hubs/"+noHub+"/events/stream", nil, "not_found")
	})
}

// resync tests "Resync after 410: call GET /hubs/{hub_id}/devices, then read events without after
// and continue from the newest event." The device list has the header Event-Cursor (design, section
// 6), after which events report every change that the list does not have yet.
func resync(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Resync")
	hub := c.VirtualHub(
		tenant, virtualhub.Config{Devices: []virtualhub.DeviceSpec{{Kind: "electricity_meter"}}},
	)
	path := "/hubs/" + hub.ID() + "/devices"
	before := tenant.Head(hub.ID())
	harness.Must(t, hub.FactoryReset())
	streamstest.Eventually(t, "410", func() bool {
		answer, err := tenant.Try(http.MethodGet, "/hubs/"+hub.ID()+"/events?after="+before, nil)
		return err == nil && answer.Status == http.StatusGone
	})
	harness.Connected(t, hub)

	stop, stopped := make(chan struct{}), make(chan struct{})
	// meanwhile the hub renames its device every few milliseconds
	go func() {
		defer close(stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			case <-tick.C:
				if err := hub.Rename(1, fmt.Sprint(n)); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	numbered := func(e harness.Event) (n int) {
		var data struct{ Name string }
		if e.Type != "device.updated" || json.Unmarshal(e.Data, &data) != nil {
			return 0
		}
		n, _ = strconv.Atoi(data.Name)
		return n
	}
	for range 15 {
		list := tenant.Get(path)
		cursor := list.Header.Get("Event-Cursor")
		if cursor == "" {
			t.Fatalf("got headers %v, want Event-Cursor", list.Header)
		}
		name, _ := data(t, list.Object(t))[0]["name"].(string)
		known, _ := strconv.Atoi(name) // 0: not renamed yet
		next := tenant.Await(
			hub.ID(), cursor, "an event after the cursor",
			func(e harness.Event) bool { return numbered(e) > 0 },
		)
		if numbered(next) > known+1 {
			t.Errorf("list has name %d, next event after its cursor has %d", known, numbered(next))
		}
		// Rule 5: the newest event of a read without a cursor is a valid cursor.
		newest := tenant.AllEvents(hub.ID(), "")
		last := newest[len(newest)-1]
		if after := tenant.Await(
			hub.ID(), last.Cursor, "an event after the newest",
			func(e harness.Event) bool { return numbered(e) > 0 },
		); numbered(after) != numbered(last)+1 {
			t.Errorf("after the newest event, %d, got %d", numbered(last), numbered(after))
		}
	}
	close(stop)
	<-stopped
}
