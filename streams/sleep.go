package streams

import (
	"context"
	"time"
)

// Sleep pauses for d. It returns false if ctx ended first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Elapsed returns how long ago since was, by the monotonic clock or by the wall clock, whichever is
// longer: Go's monotonic clock stands still while the machine is suspended, and the wall clock can
// be set back. It is for leases, which others take over meanwhile. since must be from time.Now.
func Elapsed(since time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(since), now.Round(0).Sub(since.Round(0))) // Round drops the monotonic clock
}
