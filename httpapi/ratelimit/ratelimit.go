// Package ratelimit counts requests: a token bucket for each client, in memory, bounded by the
// clients of a short time. Share makes the limiters of several replicas count as one. Nothing here
// starts a goroutine; a Limiter is safe for concurrent use.
package ratelimit

import (
	"math"
	"strconv"
	"sync"
	"time"
)

// Limiter keeps one token bucket for each K. A bucket is one number: the time at which it will be
// full again (the generic cell rate algorithm). Full buckets need no memory: a bucket that nothing
// was taken from for as long as filling takes, out of the deepest debt (see Share), is full, so
// what has not been touched over a whole period is dropped with it, and what is held is bounded by
// the clients of two periods.
type Limiter[K comparable] struct {
	burst    int
	interval time.Duration // in which one token comes back
	fill     time.Duration // in which an empty bucket fills
	policy   string

	mu       sync.Mutex
	epoch    time.Time           // what the times in the maps count from
	latest   time.Duration       // the latest time that was given
	began    time.Duration       // when current was begun
	current  map[K]time.Duration // when each bucket touched in this period is full
	previous map[K]time.Duration // the same of the period before
	taken    map[K]int           // what was granted and not told yet; nil: nobody is told
}

// New makes buckets of burst tokens into which rate tokens come back a second.
func New[K comparable](rate float64, burst int, now time.Time) *Limiter[K] {
	interval := max(1, time.Duration(float64(time.Second)/rate))
	fill := interval * time.Duration(burst)
	return &Limiter[K]{
		burst: burst, interval: interval, fill: fill,
		policy: strconv.Itoa(burst) + ";w=" + strconv.Itoa(max(1, int(math.Round(float64(burst)/rate)))),
		epoch:  now, current: map[K]time.Duration{}, previous: map[K]time.Duration{},
	}
}

// Allowance is what Take found.
type Allowance struct {
	Granted bool
	// Limit is the bucket's size, and Policy the same with the seconds in which it fills, as the
	// header RateLimit-Policy has it.
	Limit     int
	Policy    string
	Remaining int
	// Full is the time until the bucket is, and Next until it has a token: zero when it has one.
	Full, Next time.Duration
}

// Take takes one token from id's bucket when there is one.
func (l *Limiter[K]) Take(id K, at time.Time) Allowance {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.turn(at)
	full := l.fullAt(id, now)
	a := Allowance{Limit: l.burst, Policy: l.policy}
	if full+l.interval-now <= l.fill {
		a.Granted = true
		full += l.interval
		if l.taken != nil {
			l.taken[id]++
		}
	} else {
		a.Next = full + l.interval - now - l.fill
	}
	l.current[id] = full
	a.Full = full - now
	a.Remaining = max(0, int((l.fill-a.Full)/l.interval))
	return a
}

// turn returns the time on the limiter's scale, and begins the next period when this one is over.
// Time does not go back: a request that waited before it is counted comes with an earlier time than
// those before it, at which their tokens would not have come back yet.
func (l *Limiter[K]) turn(at time.Time) (now time.Duration) {
	l.latest = max(l.latest, at.Sub(l.epoch))
	now = l.latest
	if age, period := now-l.began, maxDebt*l.fill; age >= period {
		l.previous, l.current, l.began = l.current, map[K]time.Duration{}, now
		if age >= 2*period {
			clear(l.previous)
		}
	}
	return now
}

// fullAt says when id's bucket is full: now, or later.
func (l *Limiter[K]) fullAt(id K, now time.Duration) time.Duration {
	full, ok := l.current[id]
	if !ok {
		full = l.previous[id]
	}
	return max(full, now)
}
