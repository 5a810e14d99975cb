package streams_test

import (
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// A lease that was measured by the monotonic clock alone was still held after the machine had been
// suspended for longer than the lease lasts: that clock stands still meanwhile.
func TestElapsedOverASuspension(t *testing.T) {
	t.Parallel()
	before := streamstest.BeforeSuspend(time.Hour)
	if monotonic := time.Since(before); monotonic > time.Minute {
		t.Fatalf("time.Since: %v, want a moment", monotonic)
	}
	if got := streams.Elapsed(before); got < time.Hour {
		t.Errorf("Elapsed over a suspension of an hour: %v, want at least 1h", got)
	}
	if got := streams.Elapsed(time.Now()); got > time.Minute {
		t.Errorf("Elapsed since now: %v, want a moment", got)
	}
}
