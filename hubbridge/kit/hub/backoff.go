package hub

import (
	"math/rand/v2"
	"time"
)

// backoff computes the wait between attempts. The wait doubles from minimum to maximum and varies
// by half in either direction, so that hubs that lost their broker together do not return together.
// minimum should be at least a second: the broker delays and then closes a second takeover of a
// connection within one second.
type backoff struct {
	minimum, maximum time.Duration

	failures int
}

// next returns the wait after one more failure.
func (b *backoff) next() time.Duration {
	wait := b.maximum
	if b.failures < 16 {
		wait = min(b.maximum, b.minimum<<b.failures)
	}
	b.failures++
	return wait/2 + rand.N(wait+1)
}

// reset makes the next wait start from minimum.
func (b *backoff) reset() { b.failures = 0 }
