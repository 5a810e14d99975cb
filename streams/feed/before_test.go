package feed

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// readBack reads a log from its end, in pages, and returns the numbers of the events as read.
func (f *fixture) readBack(hub domain.HubID, limit int) []int {
	f.tb.Helper()
	var got []int
	for before := ""; ; {
		page, err := f.Before(f.tb.Context(), hub, before, limit)
		if err != nil {
			f.tb.Fatalf("Before %q: %v", before, err)
		}
		got = append(got, numbers(f.tb, page.Events)...)
		if page.HasMore && len(page.Events) != limit {
			f.tb.Fatalf("page of %d events has more, want %d", len(page.Events), limit)
		}
		if before = page.Next; !page.HasMore {
			return got
		}
	}
}

func newestFirst(from, to int) []int {
	numbers := upTo(from, to)
	slices.Reverse(numbers)
	return numbers
}

// Pages before a place have every event once, newest first, from the ring and from the stream.
func TestBefore(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	if got := f.readBack(hubA, 10); len(got) != 0 {
		t.Fatalf("an empty log has events %v", got)
	}
	f.command(hubA)
	last := f.append(hubA, 0, 1, 300)
	for range 70 { // commands fill a block
		f.command(hubA)
	}
	f.append(hubA, last, 301, 30)
	f.command(hubA)
	cold := startOn(t, f.conns, Config{})
	small := startOn(t, f.conns, Config{RingEvents: 5})
	for name, reader := range map[string]*fixture{"ring": f, "stream": cold, "small ring": small} {
		for _, limit := range []int{1, 7, 64, 100, 500} {
			if got := reader.readBack(hubA, limit); !slices.Equal(got, newestFirst(1, 330)) {
				t.Errorf("%s, limit %d: got %v, want 330 to 1", name, limit, got)
			}
		}
	}
	// Next is a place for both directions.
	page, err := f.Before(t.Context(), hubA, "", 30)
	streamstest.Must(t, err)
	f.want("the page after the place before event 301", page.Next, upTo(301, 330))
	// The events before a time.
	page, err = f.Before(t.Context(), hubA, f.at(time.Now().Add(time.Minute)), 2)
	if err != nil || !slices.Equal(numbers(t, page.Events), []int{330, 329}) {
		t.Errorf("before a time: got %v, %v, want 330 and 329", numbers(t, page.Events), err)
	}
}

// Neither direction has events from before a reset. If At returned the log's end for an earlier
// time, its reader would miss the events of the new epoch.
func TestBeforeReset(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now()
	last := f.append(hubA, 0, 1, 3)
	old := f.page(hubA, "", 10).Next
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: last})
	f.append(hubA, last, 4, 3)
	if got := f.readBack(hubA, 2); !slices.Equal(got, []int{6, 5, 4}) {
		t.Errorf("after a reset: got %v, want 6 to 4", got)
	}
	f.want("events since before the reset", f.at(begun.Add(-time.Minute)), upTo(4, 6))
	for before, want := range map[string]domain.Code{
		old:       domain.CodeCursorExpired,
		"garbage": domain.CodeInvalidRequest,
	} {
		if _, err := f.Before(t.Context(), hubA, before, 10); codeOf(err) != want {
			t.Errorf("Before %q: %v, want %s", before, err, want)
		}
	}
}

// Events that have expired are not returned, also before the broker has removed them.
func TestBeforeExpires(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	f.append(hubA, 0, 1, 3)
	page, err := f.Before(t.Context(), hubA, "", 1)
	streamstest.Must(t, err)
	later := startOn(t, f.conns, Config{Now: func() time.Time { return time.Now().Add(2 * time.Hour) }})
	for _, before := range []string{"", page.Next} {
		got, err := later.Before(t.Context(), hubA, before, 10)
		if err != nil || len(got.Events) != 0 || got.HasMore {
			t.Errorf("Before %q after the retention: got %+v, %v, want no events", before, got, err)
		}
	}
}
