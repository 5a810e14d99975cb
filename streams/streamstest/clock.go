package streamstest

import (
	"sync/atomic"
	"time"
)

// Clock is the time of day, which a test sets forward: what takes a product hours takes a test no
// time, and nothing expires because the machine is busy.
type Clock struct{ ahead atomic.Int64 }

// Now returns the time.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Advance sets the clock forward, or back by a negative duration.
func (c *Clock) Advance(d time.Duration) { c.ahead.Add(int64(d)) }
