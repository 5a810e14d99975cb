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
				if got := w.View(now); got.Status != "open" {
					t.Fatalf("opened: got %+v", got)
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
			left := time.Duration(w.View(now).ExpiresIn) * time.Second
			if rest := max(0, until.Sub(now)); left < rest || left >= rest+time.Second {
				t.Fatalf("%v left, it closes at %v and it is %v", left, until, now)
			}
		}
	})
}
