package hublog

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
)

// TestRestored reads a log that was restored from a backup: what was in the backup is there under
// its own cursors, and a cursor of what was lost is rejected, also once another event has its
// sequence.
func TestRestored(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 10)
	former := f.page(hubA, "", 100).Events
	end, err := f.EndCursor(t.Context(), hubA)
	if err != nil {
		t.Fatal(err)
	}
	// What the original stored behind the backup had these cursors.
	lost := cursor{domain.NewEpochID(0x0a), last + 1, time.Now().UnixMilli()}.String()

	f.begin(
		hubA,
		domain.Epoch{
			ID:     domain.NewEpochID(0xc),
			Former: domain.FormerEpochs{{ID: domain.NewEpochID(0xa), Through: 10}},
		},
	)
	if got := numbers(t, f.page(hubA, "", 100).Events); !slices.Equal(got, upTo(1, 10)) {
		t.Fatalf("restored are %v", got)
	}
	rejected := func(what, after string) {
		t.Helper()
		if _, err := f.Page(t.Context(), hubA, after, 10); codeOf(err) != domain.CodeCursorExpired {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := f.Follow(t.Context(), hubA, after); codeOf(err) != domain.CodeCursorExpired {
			t.Errorf("%s, as a stream: %v", what, err)
		}
	}
	rejected("a cursor of what was lost", lost)
	follower, err := f.Follow(t.Context(), hubA, end)
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	f.append(hubA, last, 101, 5)
	rejected("a cursor of what was lost, with another event in its place", lost)

	var followed []domain.EncodedEvent
	for len(followed) < 5 {
		<-follower.Ready()
		events, err := follower.Next(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		followed = append(followed, events...)
	}
	if got := numbers(t, followed); !slices.Equal(got, upTo(101, 105)) {
		t.Errorf("a stream from the end of the backup gets %v", got)
	}
	all := f.page(hubA, "", 100).Events
	if got := numbers(t, all); !slices.Equal(got, append(upTo(1, 10), upTo(101, 105)...)) {
		t.Errorf("the log has %v", got)
	}
	for i, e := range all {
		if i < len(former) && e.Cursor != former[i].Cursor {
			t.Errorf("event %d has another cursor than before", i)
		}
		page := f.page(hubA, e.Cursor, 100)
		if got := len(page.Events); got != len(all)-i-1 {
			t.Errorf("behind event %d there are %d", i, got)
		}
	}

	// Nothing of the log is in the backup: its sequences begin again, and no cursor of before means
	// anything.
	g := start(t, Config{})
	empty, err := g.EndCursor(t.Context(), hubA)
	if err != nil {
		t.Fatal(err)
	}
	g.begin(
		hubA,
		domain.Epoch{
			ID:     domain.NewEpochID(0xc),
			Former: domain.FormerEpochs{{ID: domain.NewEpochID(0xa), Through: 0}},
		},
	)
	g.append(hubA, 0, 201, 20)
	f = g
	rejected("the position of a log that was empty", empty)
	for _, e := range former {
		rejected("a cursor of before", e.Cursor)
	}
	if got := numbers(t, g.page(hubA, "", 100).Events); !slices.Equal(got, upTo(201, 220)) {
		t.Errorf("the log has %v", got)
	}
}
