package directory

import (
	"context"
	"math/rand/v2"
	"time"

	"hubcloud/streams"
)

const (
	// firstPause and maxPause bound the pause between two tries, which doubles each time.
	firstPause = 5 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// sleep pauses for a random time of d/2 to d, so that replicas do not read in step. It returns
// false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	return streams.Sleep(ctx, d/2+rand.N(d/2+1))
}
