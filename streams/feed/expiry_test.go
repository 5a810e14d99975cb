package feed

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

// A client that keeps reading a quiet hub with pages, long polls or a stream never gets a 410 and
// misses no event. A client that stops reading for longer than the retention gets a 410.
func TestQuietHubOverRetentions(t *testing.T) {
	t.Parallel()
	const retention = time.Hour
	var clock streamstest.Clock
	f := start(t, Config{Retention: retention, Now: clock.Now})
	last := f.append(hubA, 0, 1, 3)
	forgotten := f.page(hubA, "", 2).Next
	polled := f.page(hubA, "", 10).Next
	waited := polled
	reader := f.follow(hubA, polled)
	for n := range 12 {
		clock.Advance(retention / 3)
		page := f.page(hubA, polled, 10)
		polled = page.Next
		long, err := f.Part(t.Context(), hubA, waited, 10, unbounded, time.Millisecond)
		if err != nil {
			t.Fatalf("long poll %d: %v", n, err)
		}
		waited = long.Next
		if len(page.Events) > 0 || len(long.Events) > 0 {
			t.Fatalf(
				"a page has %v and a long poll %v, want no event again", numbers(t, page.Events),
				numbers(t, long.Events),
			)
		}
		// A stream that reconnects now continues.
		again, err := f.Follow(t.Context(), hubA, reader.Cursor())
		if err != nil {
			t.Fatalf("Follow %d from the reader's cursor: %v", n, err)
		}
		again.Close()
	}
	f.wantError("an old cursor", forgotten, domain.CodeCursorExpired)
	if page := f.page(hubA, "", 10); len(page.Events) != 0 || page.HasMore {
		t.Errorf("the log has %v, want no events", numbers(t, page.Events))
	}
	f.append(hubA, last, 4, 2)
	for name, after := range map[string]string{
		"polled": polled, "waited": waited, "streamed": reader.Cursor(),
	} {
		f.want("page after the cursor "+name, after, upTo(4, 5))
	}
	if events, err := reader.Next(t.Context(), 10); err != nil ||
		!slices.Equal(numbers(t, events), upTo(4, 5)) {
		t.Errorf("Next = %v, %v; want [4 5]", numbers(t, events), err)
	}
}

// The end cursor of an empty log stays valid over a restart of the broker. Expired commands after
// an event's cursor do not expire the cursor.
func TestEmptiedLogAcrossRestart(t *testing.T) {
	t.Parallel()
	// The clock stands still once the messages have expired, so nothing else does during the restart.
	var still atomic.Pointer[time.Time]
	cfg := Config{Retention: time.Second, Now: func() time.Time {
		if now := still.Load(); now != nil {
			return *now
		}
		return time.Now()
	}}
	broker := streamstest.New(t)
	f := startOn(t, broker.Connect(t), cfg)
	f.append(hubA, 0, 1, 20)
	for range 5 {
		f.command(hubA)
	}
	streamstest.Eventually(t, "all messages expire", func() bool {
		b, err := f.bounds(t.Context(), hubA)
		return err == nil && b.first == 26 && b.last == 25
	})
	now := time.Now()
	still.Store(&now)
	after, err := f.EndCursor(t.Context(), hubA)
	if err != nil {
		t.Fatal(err)
	}
	broker.Stop()
	broker.Start(t)
	streamstest.Eventually(t, "the broker is back", func() bool {
		last, err := f.LastSequence(t.Context(), hubA)
		return err == nil && last == 25
	})
	fresh := startOn(t, broker.Connect(t), cfg)
	if page := fresh.page(hubA, after, 10); len(page.Events) != 0 {
		t.Fatalf("page after the end is %+v, want no events", page)
	}
	if last := f.append(hubA, 0, 21, 3); last != 28 {
		t.Fatalf("the last sequence is %d, want 28", last)
	}
	for _, reader := range []*fixture{f, fresh} {
		for _, after := range []string{after, ""} {
			got := numbers(t, reader.page(hubA, after, 10).Events)
			if !slices.Equal(got, upTo(21, 23)) {
				t.Errorf("page after %q has %v, want 21 to 23", after, got)
			}
		}
	}
}

// After the retention was made longer, an older cursor is within it, but the events after the
// cursor have expired under the shorter one. They are read from the journal, which has kept them.
func TestLongerRetention(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	viewstest.Open(t, conns, 300*time.Millisecond)
	long := startOn(t, conns, Config{})
	last := long.append(hubA, 0, 1, 10)
	page := long.page(hubA, "", 5)
	end := long.page(hubA, page.Next, 10).Next
	streamstest.Eventually(t, "all events expire", func() bool {
		info, err := long.api(hubA).Info(t.Context(), streams.HubStream(hubA))
		return err == nil && boundsOf(info).first == last+1
	})
	long.append(hubA, 0, 11, 2)
	for range 2 {
		got := numbers(t, long.page(hubA, page.Next, 10).Events)
		if !slices.Equal(got, upTo(6, 12)) {
			t.Errorf("page after event 5 has %v, want 6 to 12", got)
		}
		for after, want := range map[string][]int{end: upTo(11, 12), "": upTo(1, 10)} {
			got := numbers(t, long.page(hubA, after, 10).Events)
			if !slices.Equal(got, want) {
				t.Errorf("page after %q has %v, want %v", after, got, want)
			}
		}
	}
}
