package contract

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/test/harness"
)

// events tests "Events": pages, cursors and waiting.
func events(t *testing.T, c *harness.Target) {
	tenant := c.Tenant("Events")

	t.Run("pages", func(t *testing.T) {
		// "200 {data: [Event], next_cursor: string, has_more: boolean}"; "limit (integer 1-500,
		// default 100)". "Without after, events start from the oldest retained; with after, events
		// after that cursor, oldest first." "The caller passes next_cursor as after on the next
		// call." "When has_more is true, read again at once."
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 250)
		hub.WaitAck("log-1", 250)
		path := "/hubs/" + hub.ID + "/events"
		var first harness.Page
		client.Get(path).JSON(t, &first)
		if len(first.Data) != 100 || !first.HasMore {
			t.Fatalf("without a limit: got %d events, has_more %v", len(first.Data), first.HasMore)
		}
		for _, limit := range []int{1, 7, 125, 249, 250, 500} {
			after, next := "", uint64(1)
			for {
				page := client.Events(hub.ID, after, limit, 0)
				for _, e := range page.Data {
					if string(e.Observed().Value) != text(number(next)) {
						t.Fatalf("pages of %d: after event %d got %s", limit, next-1, e.Data)
					}
					next++
				}
				if more := next <= 250; page.HasMore != more || more && len(page.Data) != limit {
					t.Fatalf(
						"pages of %d: %d events, has_more %v, up to %d", limit, len(page.Data),
						page.HasMore, next-1,
					)
				}
				if n := len(page.Data); n > 0 && page.NextCursor != page.Data[n-1].Cursor {
					t.Errorf(
						"next_cursor: got %q, want the last event's %q", page.NextCursor,
						page.Data[n-1].Cursor,
					)
				}
				after = page.NextCursor
				if !page.HasMore {
					break
				}
			}
			if next != 251 {
				t.Errorf("pages of %d end at %d", limit, next-1)
			}
			end := client.Events(hub.ID, after, limit, 0)
			if len(end.Data) != 0 || end.NextCursor == "" || end.HasMore {
				t.Errorf("past the end: %+v", end)
			}
		}
		// One event has one cursor, whenever it is read; "unique per hub".
		again, cursors := client.AllEvents(hub.ID, ""), map[string]bool{}
		for i, e := range again {
			if cursors[e.Cursor] = true; i < 100 && e.Cursor != first.Data[i].Cursor {
				t.Errorf(
					"event %d: want cursor %s as before, got %s", i+1, first.Data[i].Cursor,
					e.Cursor,
				)
			}
		}
		if len(cursors) != 250 {
			t.Errorf("250 events: got %d distinct cursors", len(cursors))
		}
	})

	t.Run("wait", func(t *testing.T) {
		// "wait holds the request open until an event arrives or the wait elapses"; "up to 60
		// seconds".
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		began := time.Now()
		empty := client.Events(hub.ID, "", 100, 1)
		if took := time.Since(began); len(empty.Data) != 0 || empty.HasMore ||
			took < 900*time.Millisecond ||
			took > 30*time.Second {
			t.Errorf("empty wait of 1 s: took %s, got %+v", took, empty)
		}
		answered := make(chan harness.Answer, 1)
		go func() {
			answer, err := client.Try(
				http.MethodGet, "/hubs/"+hub.ID+"/events?wait=60&after="+empty.NextCursor, nil,
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
		began = time.Now()
		if page := client.Events(hub.ID, empty.NextCursor, 100, 60); len(page.Data) != 1 ||
			time.Since(began) > 30*time.Second {
			t.Errorf("wait with an event present: took %s, got %+v", time.Since(began), page)
		}
	})

	t.Run("bad parameters", func(t *testing.T) {
		client := tenant.For(t)
		hub, other := c.For(t).Online(tenant), c.For(t).Online(tenant)
		for _, h := range []*harness.RawHub{hub, other} {
			h.EventsFrom("log-1", 1, 3)
			h.WaitAck("log-1", 3)
		}
		path := "/hubs/" + hub.ID + "/events"
		cursor := client.Events(hub.ID, "", 1, 0).NextCursor
		swapped := []byte(cursor)
		if swapped[len(swapped)/2]++; swapped[len(swapped)/2] > 'z' ||
			swapped[len(swapped)/2] == ':' ||
			swapped[len(swapped)/2] == '[' {
			swapped[len(swapped)/2] -= 2
		}
		for _, query := range []string{
			"limit=0", "limit=501", "limit=ten", "limit=", "limit=-1", "limit=1.5",
			"limit=99999999999999999999", "wait=-1", "wait=61", "wait=1.5", "wait=x", "wait=",
			"after=garbage", "after=", "after=%00", "after=" + strings.Repeat("x", 3000),
			"after=" + cursor + "x", "after=" + cursor[1:],
			"after=" + url.QueryEscape(string(swapped)),
			"after=" + cursor + "&after=" + cursor, "limit=1&limit=2",
		} {
			client.Rejected(http.MethodGet, path+"?"+query, nil, "invalid_request")
		}
		// "cursor: position in the hub's events": another hub's cursor is invalid.
		foreign := client.Events(other.ID, "", 1, 0).NextCursor
		client.Rejected(http.MethodGet, path+"?after="+foreign, nil, "cursor_expired")
		answer, err := client.Try(http.MethodGet, path+"/stream", nil, "Last-Event-ID", "garbage")
		if err != nil || answer.Status != http.StatusBadRequest ||
			answer.ErrorType() != "invalid_request" {
			t.Errorf(
				"stream after a malformed cursor: got %d %s %v, want 400", answer.Status,
				answer.Body, err,
			)
		}
		answer, err = client.Try(http.MethodGet, path+"/stream", nil, "Last-Event-ID", foreign)
		if err != nil || answer.Status != http.StatusGone ||
			answer.ErrorType() != "cursor_expired" {
			t.Errorf(
				"stream after another hub's cursor: got %d %s %v, want 410", answer.Status,
				answer.Body, err,
			)
		}
	})

	t.Run("before a reset", func(t *testing.T) {
		// "A cursor older than 24 hours, or from before a hub reset, gets 410 cursor_expired."
		client := tenant.For(t)
		hub := c.For(t).Online(tenant)
		hub.EventsFrom("log-1", 1, 3)
		hub.WaitAck("log-1", 3)
		page := client.Events(hub.ID, "", 2, 0)
		hub.Hello("log-2", 1, 2)
		hub.WaitAck("log-2", 0)
		hub.EventsFrom("log-2", 1, 2)
		hub.WaitAck("log-2", 2)
		for _, cursor := range []string{page.Data[0].Cursor, page.NextCursor} {
			client.Rejected(
				http.MethodGet, "/hubs/"+hub.ID+"/events?after="+cursor, nil, "cursor_expired",
			)
			client.Rejected(
				http.MethodGet, "/hubs/"+hub.ID+"/events?wait=30&after="+cursor, nil,
				"cursor_expired",
			)
			answer, err := client.Try(
				http.MethodGet, "/hubs/"+hub.ID+"/events/stream", nil, "Last-Event-ID", cursor,
			)
			if err != nil || answer.Status != http.StatusGone {
				t.Errorf("stream: %d %s %v", answer.Status, answer.Body, err)
			}
		}
		all := client.AllEvents(hub.ID, "")
		if len(all) != 3 || all[0].Type != "hub.log_reset" || all[0].DeviceID != nil ||
			!sameJSON(all[0].Data, []byte(`{"reason":"factory_reset"}`)) {
			t.Errorf(
				"after the reset: got %s, want hub.log_reset and two events",
				harness.FormatEvents(all),
			)
		}
	})

	t.Run("order is per hub, and nothing is missing", func(t *testing.T) {
		// "Order is per hub"; "Delivery is at least once": a repeated event has the same cursor. A
		// reader follows while the hub sends.
		client := tenant.For(t)
		hub := c.For(t).
			VirtualHub(tenant, virtualhub.Config{
				Devices: []virtualhub.DeviceSpec{{Kind: "electricity_meter"}},
			})
		const many = 1500
		after := client.Head(hub.ID())
		go func() {
			for i := range many / 50 {
				if _, err := hub.Emit(harness.Readings(50)...); err != nil {
					t.Error(err)
					return
				}
				if i%10 == 5 {
					hub.CutConnection() // the hub resends unacknowledged events
				}
			}
		}()
		seen, got := map[string]bool{}, 0
		for deadline := time.Now().Add(5 * time.Minute); got < many && time.Now().Before(deadline); {
			page := client.Events(hub.ID(), after, 500, 1)
			for _, e := range page.Data {
				if seen[e.Cursor] {
					t.Fatalf("cursor %s: got it twice", e.Cursor)
				}
				if seen[e.Cursor] = true; e.Type == "channel.observed" {
					if want := text(number(uint64(50 - got%50))); string(
						e.Observed().Value,
					) != want {
						t.Fatalf("event %d: got %s, want %s", got, e.Data, want)
					}
					got++
				}
			}
			after = page.NextCursor
		}
		if got != many {
			t.Errorf("got %d events, want %d", got, many)
		}
	})
}

func number(n uint64) *string {
	s := ""
	for {
		s = string(rune('0'+n%10)) + s
		if n /= 10; n == 0 {
			return &s
		}
	}
}
