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
			t.Fatalf("%d of 60 is refused", i)
		}
	}
	wait, ok := h.Take("a", now)
	if ok || wait != time.Minute {
		t.Errorf("one too many: %t, wait %v", ok, wait)
	}
	if _, ok := h.Take("b", now); !ok {
		t.Error("another pays for the first")
	}
	if _, ok := h.Take("a", now.Add(wait)); !ok {
		t.Error("refused after the wait")
	}
	if _, ok := NewHourly(0).Take("a", now); !ok {
		t.Error("refused without a bound")
	}
}

// TestHourlyForgets: ids that came once take no memory for long, however many they are.
func TestHourlyForgets(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	h := NewHourly(3600)
	for i := range 5 * maxKept {
		now = now.Add(time.Millisecond)
		h.Take(strconv.Itoa(i), now)
		if len(h.kept) > maxKept+1001 {
			t.Fatalf("%d are kept after %d", len(h.kept), i)
		}
	}
}
