package hublog

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// TestAt reads from the cursors of several times: each page begins with the first event since.
func TestAt(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now()
	last := f.append(hubA, 0, 1, 3)
	between := time.Now().Add(2 * time.Millisecond)
	streamstest.Eventually(
		t, "the clock moves on",
		func() bool { return time.Now().After(between.Add(2 * time.Millisecond)) },
	)
	f.append(hubA, last, 4, 3)
	for at, want := range map[time.Time][]int{
		begun.Add(-2 * time.Hour):                         upTo(1, 6),
		begun.Add(-time.Minute):                           upTo(1, 6),
		between.Truncate(time.Millisecond):                upTo(4, 6),
		time.Now().Add(time.Minute).Truncate(time.Second): {},
	} {
		after, err := f.At(t.Context(), hubA, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := numbers(t, f.page(hubA, after, 10).Events); !slices.Equal(got, want) {
			t.Errorf("from %v: %v, want %v", at, got, want)
		}
	}
	_, err := f.At(t.Context(), "hub-none-none-none", begun)
	if codeOf(err) != domain.CodeNotFound {
		t.Errorf("At of a hub without an organization: %v, want not_found", err)
	}
}

// TestAtBeforeReset asks for the events since a time before the hub was reset. At used to return
// the log's end then, so that the reader missed the events of the new epoch.
func TestAtBeforeReset(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	begun := time.Now()
	last := f.append(hubA, 0, 1, 3)
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xb), After: last})
	f.append(hubA, last, 4, 3)
	after, err := f.At(t.Context(), hubA, begun.Add(-time.Minute))
	if err != nil {
		t.Fatalf("At: %v", err)
	}
	if got, want := numbers(t, f.page(hubA, after, 10).Events), upTo(4, 6); !slices.Equal(got, want) {
		t.Errorf("events since a time before the reset are %v, want %v", got, want)
	}
}
