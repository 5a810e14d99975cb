package domain_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"hubcloud/domain"
)

// After any sequence of uses, a window is open for its time and for one device only.
func TestWindow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := origin.At
		var w domain.WindowState
		var until time.Time // zero: it is closed
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(
				time.Duration(rapid.Int64Range(0, int64(90*time.Second)).Draw(t, "later")),
			)
			open := now.Before(until)
			switch rapid.SampledFrom([]string{"open", "use", "close", "wait"}).Draw(t, "step") {
			case "open":
				lasts := time.Duration(rapid.Int64Range(1, int64(3*time.Minute)).Draw(t, "lasts"))
				w, until = domain.OpenWindow(now, lasts), now.Add(lasts)
				snapshot := w.View(now)
				left := time.Duration(snapshot.ExpiresIn) * time.Second
				if snapshot.Status != "open" || left < lasts || left >= lasts+time.Second {
					t.Fatalf("snapshot %+v of %v", snapshot, lasts)
				}
			case "use":
				used, ok := w.Use(now)
				if ok != open {
					t.Fatalf("used: %t, open: %t", ok, open)
				}
				w, until = used, time.Time{}
			case "close":
				w, until = domain.WindowState{}, time.Time{}
			}
			if w.Open(now) != now.Before(until) {
				t.Fatalf("open: %t; it closes at %v and it is %v", w.Open(now), until, now)
			}
		}
	})
}

func TestWindowOfTheContract(t *testing.T) {
	t.Parallel()
	w := domain.OpenWindow(origin.At, 120*time.Second)
	for after, want := range map[time.Duration]int{
		0: 120, time.Millisecond: 120, time.Second: 119, 119*time.Second + 1: 1,
		120 * time.Second: 0, time.Hour: 0,
	} {
		if got := w.View(origin.At.Add(after)).ExpiresIn; got != want {
			t.Errorf("after %v: got %d s left, want %d", after, got, want)
		}
	}
	if w.Open(origin.At.Add(120*time.Second)) || !w.Open(origin.At.Add(120*time.Second-1)) {
		t.Error("open after 120 s: got true, want false")
	}
}
