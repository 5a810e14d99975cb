package brokerconn

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := Backoff{Min: time.Second, Max: 30 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		if wait := b.Next(); wait < want*time.Second/2 || wait > want*time.Second*3/2 {
			t.Errorf("attempt %d: %v", i, wait)
		}
	}
	b.Reset()
	if wait := b.Next(); wait > 1500*time.Millisecond {
		t.Errorf("after a reset: %v", wait)
	}
}
