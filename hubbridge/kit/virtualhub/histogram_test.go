package virtualhub

import (
	"testing"
	"time"
)

func TestHistogram(t *testing.T) {
	t.Parallel()
	var h histogram
	if h.quantile(0.5) != 0 {
		t.Error("quantile of an empty histogram must be 0")
	}
	for i := range 1000 {
		h.add(time.Duration(i+1) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{
		0: time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond,
		1: time.Second,
	} {
		if got := h.quantile(q); got < want || float64(got) > 1.14*float64(want) {
			t.Errorf("quantile(%v) = %v, want %v to %v", q, got, want, want*114/100)
		}
	}
	h.add(0)
	h.add(1e6 * time.Hour) // beyond the last bucket
}
