package outbox

import (
	"testing"
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
