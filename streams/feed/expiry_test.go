package feed

import (
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

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
	if found, err := f.LastEvents(t.Context(), hubA); err != nil || len(found) > 0 {
		t.Errorf("LastEvents = %v, %v; want none", found, err)
	}
	now := time.Now()
	still.Store(&now)
	after, err := f.EndCursor(t.Context(), hubA)
	streamstest.Must(t, err)
	broker.Stop()
	broker.Start(t)
	streamstest.Eventually(t, "the broker is back", func() bool {
		last, err := f.LastSequence(t.Context(), hubA)
		return err == nil && last == 25
	})
	fresh := startOn(t, broker.Connect(t), cfg)
	fresh.want("the page after the end", after, nil)
	if last := f.append(hubA, 0, 21, 3); last != 28 {
		t.Fatalf("the last sequence is %d, want 28", last)
	}
	for _, reader := range []*fixture{f, fresh} {
		reader.want("the page after the end", after, upTo(21, 23))
		reader.want("the log", "", upTo(21, 23))
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
		long.want("after event 5", page.Next, upTo(6, 12))
		long.want("after event 10", end, upTo(11, 12))
		long.want("the log", "", upTo(1, 12))
	}
}
