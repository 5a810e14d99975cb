package allowance

import (
	"strconv"
	"testing"
	"time"
)

func TestHourly(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := NewHourly(60)
	for i := range 60 {
		if _, ok := h.Take("a", now); !ok {
			t.Fatalf("use %d of 60: got false, want true", i+1)
		}
	}
	wait, ok := h.Take("a", now)
	if ok || wait != time.Minute {
		t.Errorf("use 61: got %t, wait %v, want false and 1m", ok, wait)
	}
	if _, ok := h.Take("b", now); !ok {
		t.Error("Take of another id: got false, want true")
	}
	if _, ok := h.Take("a", now.Add(wait)); !ok {
		t.Error("Take after the wait: got false, want true")
	}
	if _, ok := NewHourly(0).Take("a", now); !ok {
		t.Error("Take without a limit: got false, want true")
	}
}

// TestHourlyForgets checks that memory is bounded, however many ids there are.
func TestHourlyForgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := NewHourly(3600)
	for i := range 5 * maxKept {
		now = now.Add(time.Millisecond)
		h.Take(strconv.Itoa(i), now)
		if len(h.kept) > maxKept+1001 {
			t.Fatalf("kept ids after %d: got %d, want at most %d", i, len(h.kept), maxKept+1001)
		}
	}
}
