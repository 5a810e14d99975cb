package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// TestBackoff checks that pauses double up to the longest, and are cut by at most half.
func TestBackoff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "first"))
		longest := time.Duration(
			rapid.Int64Range(int64(first), int64(24*time.Hour)).Draw(t, "longest"),
		)
		failures := rapid.Uint64Min(1).Draw(t, "failures")
		full := longest
		if failures < 64 && first <= longest>>(failures-1) {
			full = first << (failures - 1)
		}
		if got := backoff(failures, first, longest); got < full/2 || got > full {
			t.Fatalf("after %d failures: got %s, want %s to %s", failures, got, full/2, full)
		}
	})
}

// TestServerPause checks that concurrent failures count once, that the next failure begins a longer
// pause, and that reset ends a pause.
func TestServerPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := serverPause{first: time.Second, longest: time.Minute}
		before := time.Now()
		if err := p.wait(t.Context()); err != nil || time.Since(before) != 0 {
			t.Fatalf("without a failure: waited %s, %v", time.Since(before), err)
		}
		for failures := range uint64(10) {
			before = time.Now()
			pause, first := p.start()
			if again, second := p.start(); again != pause || !first || second {
				t.Errorf("two failures at once: got pauses %s and %s, want one", pause, again)
			}
			full := min(time.Second<<failures, time.Minute)
			if pause < full/2 || pause > full {
				t.Errorf("failure %d: got %s, want %s to %s", failures+1, pause, full/2, full)
			}
			if err := p.wait(t.Context()); err != nil || time.Since(before) != pause {
				t.Errorf("waited %s, %v, want %s", time.Since(before), err, pause)
			}
		}
		p.start()
		p.reset()
		before = time.Now()
		if err := p.wait(t.Context()); err != nil || time.Since(before) != 0 {
			t.Errorf("after reset: waited %s, %v, want no wait", time.Since(before), err)
		}
	})
}
