package directory

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	// firstPause and maxPause bound the pause between two tries, which doubles each time.
	firstPause = 5 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// sleep pauses for a random time of d/2 to d, so that replicas do not read in step. It returns
// false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
