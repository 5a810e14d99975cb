package outbox

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"hubcloud/streams"
)

// backoff returns the pause after a number of failures in a row, at least 1: first, doubled with
// each further failure, at most longest. A random part of it, up to half, is cut off, so that mails
// that failed together are not tried again together.
func backoff(failures uint64, first, longest time.Duration) time.Duration {
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

// serverPause delays all deliveries while the mail server is unreachable.
type serverPause struct {
	first, longest time.Duration

	mu       sync.Mutex
	failures uint64
	until    time.Time
}

// wait returns nil once a delivery may be tried, and ctx's error when ctx ends.
func (p *serverPause) wait(ctx context.Context) error {
	p.mu.Lock()
	left := time.Until(p.until)
	p.mu.Unlock()
	streams.Sleep(ctx, left)
	return ctx.Err()
}

// reset ends the pause: the server has answered.
func (p *serverPause) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failures, p.until = 0, time.Time{}
}

// start begins a pause and returns its rest. During a pause it only returns the rest, with first
// false: deliveries that fail at the same time count as one failure.
func (p *serverPause) start() (left time.Duration, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if first = !now.Before(p.until); first {
		p.failures++
		p.until = now.Add(backoff(p.failures, p.first, p.longest))
	}
	return p.until.Sub(now), first
}
