package feed

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestRestored reads a log that was restored from a backup. Events in the backup keep their
// cursors. The cursor of an event that was lost is rejected, also once another event has its
// sequence.
func TestRestored(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 10)
	former := f.page(hubA, "", 100).Events
	end, err := f.EndCursor(t.Context(), hubA)
	streamstest.Must(t, err)
	// lost is the cursor of an event that was stored after the backup.
	lost := cursor{domain.NewEpochID(0x0a), last + 1, time.Now().UnixMilli()}.String()

	restore := func(f *fixture, through uint64) {
		f.begin(hubA, domain.Epoch{
			ID:     domain.NewEpochID(0xc),
			Former: domain.FormerEpochs{{ID: domain.NewEpochID(0xa), Through: through}},
		})
	}
	restore(f, 10)
	f.want("the restored log", "", upTo(1, 10))
	rejected := func(what, after string) {
		t.Helper()
		f.wantError(what, after, domain.CodeCursorExpired)
		if _, err := f.Follow(t.Context(), hubA, after); codeOf(err) != domain.CodeCursorExpired {
			t.Errorf("Follow after %s: %v, want cursor_expired", what, err)
		}
	}
	rejected("the cursor of a lost event", lost)
	follower := f.follow(hubA, end)
	f.append(hubA, last, 101, 5)
	rejected("the cursor of a lost event whose sequence another event has", lost)

	if got := read(t, follower, 100, 105); !slices.Equal(got, upTo(101, 105)) {
		t.Errorf("a reader from the end of the backup got %v, want 101 to 105", got)
	}
	all := f.page(hubA, "", 100).Events
	if got := numbers(t, all); !slices.Equal(got, append(upTo(1, 10), upTo(101, 105)...)) {
		t.Errorf("the log has events %v, want 1 to 10 and 101 to 105", got)
	}
	for i, e := range all {
		if i < len(former) && e.Cursor != former[i].Cursor {
			t.Errorf("event %d has cursor %q, want %q as before", i, e.Cursor, former[i].Cursor)
		}
		page := f.page(hubA, e.Cursor, 100)
		if got, want := len(page.Events), len(all)-i-1; got != want {
			t.Errorf("%d events after event %d, want %d", got, i, want)
		}
	}

	// A log that is not in the backup begins again with sequence 1. No former cursor is valid.
	g := start(t, Config{})
	empty, err := g.EndCursor(t.Context(), hubA)
	streamstest.Must(t, err)
	restore(g, 0)
	g.append(hubA, 0, 201, 20)
	f = g
	rejected("the end cursor of the former empty log", empty)
	for _, e := range former {
		rejected("a cursor of the former log", e.Cursor)
	}
	g.want("the log", "", upTo(201, 220))
}
