package replicas

import (
	"context"
	"sync/atomic"
	"time"

	"hubcloud/streams"
)

const (
	// runTick is how often a runClock moves, and runMost how far it moves at most each time.
	runTick = 100 * time.Millisecond
	runMost = 2 * runTick
)

// runClock measures the time during which this process ran. While the process gets no processor, is
// stopped or is suspended, the clock stands still, but for moments. An answer that is late by this
// clock has not come: its reader had the processor as often as the clock.
type runClock struct{ ran atomic.Int64 }

// run moves the clock until ctx ends, and returns ctx's error.
func (c *runClock) run(ctx context.Context) error {
	for last := time.Now(); streams.Sleep(ctx, runTick); {
		now := time.Now()
		c.ran.Add(int64(min(now.Sub(last), runMost)))
		last = now
	}
	return ctx.Err()
}

// now returns the time during which the process ran since run has begun.
func (c *runClock) now() time.Duration { return time.Duration(c.ran.Load()) }
