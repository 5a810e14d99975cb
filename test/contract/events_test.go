package contract

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// TestEvents holds the part "Events": pages, long-polls, streams and cursors.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := harness.Start(t)
	tenant := harness.NewTenant(t, s, "Events")

	t.Run("pages by cursor", func(t *testing.T) {
		hub := onlineHub(t, s, tenant)
		hub.EventsFrom("log-1", 1, 250)
		hub.WaitAck("log-1", 250)
		first := tenant.Events(hub.ID, "", 100, 0)
		second := tenant.Events(hub.ID, first.NextCursor, 100, 0)
		third := tenant.Events(hub.ID, second.NextCursor, 100, 0)
		if len(first.Data) != 100 || !first.HasMore || len(second.Data) != 100 || !second.HasMore || len(third.Data) != 50 || third.HasMore {
			t.Fatalf("%d %v, %d %v, %d %v", len(first.Data), first.HasMore, len(second.Data), second.HasMore, len(third.Data), third.HasMore)
		}
		if first.NextCursor != first.Data[99].Cursor {
			t.Errorf("next_cursor %q, last event %q", first.NextCursor, first.Data[99].Cursor)
		}
		again := tenant.Events(hub.ID, first.Data[10].Cursor, 1, 0)
		if again.Data[0].Cursor != first.Data[11].Cursor {
			t.Errorf("after event 10 comes %+v", again.Data[0])
		}
		empty := tenant.Events(hub.ID, third.NextCursor, 100, 0)
		if len(empty.Data) != 0 || empty.NextCursor == "" || empty.HasMore {
			t.Errorf("past the end: %+v", empty)
		}
	})

	t.Run("wait holds the request until an event arrives or the wait elapses", func(t *testing.T) {
		hub := onlineHub(t, s, tenant)
		began := time.Now()
		empty := tenant.Events(hub.ID, "", 100, 1)
		if took := time.Since(began); len(empty.Data) != 0 || took < 900*time.Millisecond || took > 3*time.Second {
			t.Errorf("an empty wait of 1 s took %s and gave %+v", took, empty)
		}
		answered := make(chan harness.Page, 1)
		go func() { answered <- tenant.Events(hub.ID, empty.NextCursor, 100, 30) }()
		hub.EventsFrom("log-1", 1, 1)
		select {
		case page := <-answered:
			if len(page.Data) != 1 {
				t.Errorf("%+v", page)
			}
		case <-time.After(5 * time.Second):
			t.Error("an event came and the long-poll goes on")
		}
	})

	t.Run("bad parameters and cursors", func(t *testing.T) {
		hub, other := onlineHub(t, s, tenant), onlineHub(t, s, tenant)
		other.EventsFrom("log-1", 1, 1)
		other.WaitAck("log-1", 1)
		foreign := tenant.Events(other.ID, "", 1, 0).NextCursor
		path := "/hubs/" + hub.ID + "/events"
		for _, query := range []string{"?limit=0", "?limit=501", "?limit=ten", "?wait=-1", "?wait=61", "?wait=1.5", "?after=garbage", "?after=", "?after=%00"} {
			if answer := tenant.Must(http.MethodGet, path+query, nil, http.StatusBadRequest); answer.ErrorType() != "invalid_request" {
				t.Errorf("%s: %s", query, answer.Body)
			}
		}
		if answer := tenant.Must(http.MethodGet, path+"?after="+foreign, nil, http.StatusGone); answer.ErrorType() != "cursor_expired" {
			t.Errorf("another hub's cursor: %s", answer.Body)
		}
	})

	t.Run("a stream starts with the next new event and resumes after the last", func(t *testing.T) {
		hub := onlineHub(t, s, tenant)
		hub.EventsFrom("log-1", 1, 3)
		hub.WaitAck("log-1", 3)
		stream := harness.OpenStream(t, tenant.Client, hub.ID, "")
		if got := stream.Header.Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
			t.Errorf("Content-Type %q", got)
		}
		position := <-stream.Messages
		if position.ID == "" || position.Data != "" {
			t.Errorf("the first block is %+v, and should be an id alone", position)
		}
		hub.EventsFrom("log-1", 4, 6)
		hub.WaitAck("log-1", 6)
		fourth := stream.Next(t, 5*time.Second)
		if fourth.Event != "channel.observed" || !strings.Contains(fourth.Data, `"value":4`) || !strings.Contains(fourth.Data, `"cursor":"`+fourth.ID+`"`) {
			t.Errorf("%+v", fourth)
		}
		resumed := harness.OpenStream(t, tenant.Client, hub.ID, fourth.ID)
		if fifth := resumed.Next(t, 5*time.Second); !strings.Contains(fifth.Data, `"value":5`) {
			t.Errorf("%+v", fifth)
		}
		fromStart := harness.OpenStream(t, tenant.Client, hub.ID, position.ID)
		if again := fromStart.Next(t, 5*time.Second); again != fourth {
			t.Errorf("%+v, then %+v", fourth, again)
		}
	})
}

// TestRetention: "the last 24 hours are kept"; "A cursor older than 24 hours … gets 410". The day is three seconds here.
func TestRetention(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, "--event-retention", "3s", "--stream-keepalive", "500ms", "--stream-lifetime", "3s")
	tenant := harness.NewTenant(t, s, "Retention")

	t.Run("an old cursor is gone", func(t *testing.T) {
		t.Parallel()
		hub := onlineHub(t, s, tenant)
		hub.EventsFrom("log-1", 1, 2)
		hub.WaitAck("log-1", 2)
		cursor := tenant.Events(hub.ID, "", 1, 0).NextCursor
		harness.Eventually(t, 10*time.Second, "410 for the old cursor", func() bool {
			answer, err := tenant.Do(http.MethodGet, "/hubs/"+hub.ID+"/events?after="+cursor, nil)
			return err == nil && answer.Status == http.StatusGone
		})
		if page := tenant.Events(hub.ID, "", 100, 0); len(page.Data) != 0 {
			t.Errorf("past the retention the log holds %+v", page)
		}
		// The numbering goes on: no gap is told, and nothing is stored twice.
		hub.Hello("log-1", 3, 2)
		hub.WaitAck("log-1", 2)
		hub.EventsFrom("log-1", 3, 3)
		hub.WaitAck("log-1", 3)
		if page := tenant.Events(hub.ID, "", 100, 0); len(page.Data) != 1 || page.Data[0].Type != "channel.observed" {
			t.Errorf("after the log was emptied: %+v", page)
		}
	})

	t.Run("a quiet hub read over several retentions", func(t *testing.T) {
		t.Parallel()
		hub := onlineHub(t, s, tenant)
		cursor := tenant.Events(hub.ID, "", 100, 0).NextCursor
		for range 10 {
			page := tenant.Events(hub.ID, cursor, 100, 1)
			if len(page.Data) != 0 {
				t.Fatalf("%+v", page)
			}
			cursor = page.NextCursor
		}
		hub.EventsFrom("log-1", 1, 1)
		if page := tenant.Events(hub.ID, cursor, 100, 10); len(page.Data) != 1 {
			t.Errorf("%+v", page)
		}
	})

	t.Run("a stream keeps a quiet client's cursor fresh and ends after its lifetime", func(t *testing.T) {
		t.Parallel()
		hub := onlineHub(t, s, tenant)
		lastID := ""
		for range 4 {
			stream := harness.OpenStream(t, tenant.Client, hub.ID, lastID)
			keepalives := 0
			for open := true; open; {
				select {
				case m := <-stream.Messages:
					if m.ID != "" {
						lastID = m.ID
					}
					if m.Comment == "keepalive" {
						keepalives++
					}
				case <-stream.Ended:
					open = false
				case <-time.After(5 * time.Second):
					t.Fatal("a stream of 3 s goes on")
				}
			}
			if keepalives < 3 {
				t.Errorf("%d keepalives", keepalives)
			}
		}
		hub.EventsFrom("log-1", 1, 1)
		hub.WaitAck("log-1", 1)
		stream := harness.OpenStream(t, tenant.Client, hub.ID, lastID)
		if first := stream.Next(t, 5*time.Second); !strings.Contains(first.Data, `"value":1`) {
			t.Errorf("%+v", first)
		}
	})
}
