package outbox

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// Pauses grow, never beyond the longest, and never below half of what they could be.
func TestPauses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "first"))
		longest := time.Duration(
			rapid.Int64Range(int64(first), int64(24*time.Hour)).Draw(t, "longest"),
		)
		failures := rapid.Uint64Min(1).Draw(t, "failures")
		full := longest
		if failures < 40 && first < longest>>(failures-1) {
			full = first << (failures - 1)
		}
		if p := pause(failures, first, longest); p < full/2 || p > full {
			t.Fatalf("after %d failures %s, and should be %s to %s", failures, p, full/2, full)
		}
	})
}

// What several find at once closes the way once, and the next failure closes it for longer.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gate{first: time.Second, longest: time.Minute}
		before := time.Now()
		if err := g.pass(t.Context()); err != nil || time.Since(before) != 0 {
			t.Fatalf("an open gate held for %s: %v", time.Since(before), err)
		}
		for failures := range uint64(10) {
			before = time.Now()
			wait, first := g.close()
			if again, second := g.close(); again != wait || !first || second {
				t.Errorf("closed twice at once: for %s and %s", wait, again)
			}
			full := min(time.Second<<failures, time.Minute)
			if wait < full/2 || wait > full {
				t.Errorf("closed for %s after %d failures", wait, failures+1)
			}
			if err := g.pass(t.Context()); err != nil || time.Since(before) != wait {
				t.Errorf("held for %s, not for %s: %v", time.Since(before), wait, err)
			}
		}
		g.close()
		g.free()
		before = time.Now()
		if err := g.pass(t.Context()); err != nil || time.Since(before) != 0 {
			t.Errorf("a free gate held for %s: %v", time.Since(before), err)
		}
	})
}
