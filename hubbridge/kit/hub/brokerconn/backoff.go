package brokerconn

import (
	"math/rand/v2"
	"time"
)

// Backoff computes the wait between attempts. The wait doubles from Min to Max and varies by half
// in either direction, so that hubs that lost their broker together do not return together. Min
// should be at least a second: the broker delays and then closes a second takeover of a connection
// within one second.
type Backoff struct {
	Min, Max time.Duration

	failures int
}

// Next returns the wait after one more failure.
func (b *Backoff) Next() time.Duration {
	wait := b.Max
	if b.failures < 16 {
		wait = min(b.Max, b.Min<<b.failures)
	}
	b.failures++
	return wait/2 + rand.N(wait+1)
}

// Reset makes the next wait start from Min.
func (b *Backoff) Reset() { b.failures = 0 }
