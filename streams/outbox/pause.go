package outbox

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// pause gives how long to wait after so many failures in a row, from 1: first, doubled each time,
// at most longest, and a random half of it, so that what failed together does not come back
// together.
func pause(failures uint64, first, longest time.Duration) time.Duration {
	d := first
	for range min(failures, 64) - 1 {
		if d >= longest {
			break
		}
		d *= 2
	}
	d = min(d, longest)
	return d/2 + rand.N(d/2+1)
}

// gate holds all deliveries back while the way is closed.
type gate struct {
	first, longest time.Duration

	mu       sync.Mutex
	failures uint64
	opens    time.Time
}

// pass waits until a delivery may be tried.
func (g *gate) pass(ctx context.Context) error {
	g.mu.Lock()
	wait := time.Until(g.opens)
	g.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// free says that the way is free.
func (g *gate) free() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failures, g.opens = 0, time.Time{}
}

// close says that the way is closed, and gives for how long it is not tried. first is true for the
// first who finds it so; what others find at the same time counts as one failure with it.
func (g *gate) close() (wait time.Duration, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if first = !now.Before(g.opens); first {
		g.failures++
		g.opens = now.Add(pause(g.failures, g.first, g.longest))
	}
	return g.opens.Sub(now), first
}
