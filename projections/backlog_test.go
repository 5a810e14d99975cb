package projections

import (
	"testing"
	"time"
)

// TestBacklog: the time is that of the oldest event that is lacking, and not that of the newest.
func TestBacklog(t *testing.T) {
	t.Parallel()
	var b backlog
	day := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, step := range []struct {
		second, sequence, head, lag int
	}{
		{0, 10, 10, 0},
		{5, 10, 12, 0},  // 11 and 12 have come since
		{10, 10, 12, 5}, // and are still lacking
		{15, 10, 20, 10},
		{20, 12, 20, 5}, // those that came until 15 are lacking yet
		{25, 20, 20, 0},
		{30, 20, 21, 0},
	} {
		got := b.look(uint64(step.sequence), uint64(step.head), day.Add(time.Duration(step.second)*time.Second))
		if want := time.Duration(step.lag) * time.Second; got != want {
			t.Errorf("after %d s, at %d of %d: %s, want %s", step.second, step.sequence, step.head, got, want)
		}
	}
	// What stands still for long forgets much, but not since when.
	for n := range 10_000 {
		if got := b.look(20, uint64(22+n), day.Add(time.Duration(31+n)*time.Second)); got != time.Duration(1+n)*time.Second {
			t.Fatalf("%s after %d s", got, 1+n)
		}
	}
	if len(b.seen) > maxSightings {
		t.Errorf("%d sightings are kept", len(b.seen))
	}
}
