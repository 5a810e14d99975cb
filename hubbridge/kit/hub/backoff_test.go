package hub

import (
	"testing"
	"time"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	b := backoff{minimum: time.Second, maximum: 30 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30, 30} {
		if wait := b.next(); wait < want*time.Second/2 || wait > want*time.Second*3/2 {
			t.Errorf("wait no. %d = %v, want %v s ± 50 %%", i+1, wait, int64(want))
		}
	}
	b.reset()
	if wait := b.next(); wait > 1500*time.Millisecond {
		t.Errorf("wait after Reset = %v, want at most 1.5s", wait)
	}
}
