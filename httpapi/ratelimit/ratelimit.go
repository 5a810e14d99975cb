// Package ratelimit limits the rate of requests with a token bucket for each client. Memory is
// bounded by the number of recent clients. Share combines the limiters of several replicas. The
// package starts no goroutines; a Limiter is safe for concurrent use.
package ratelimit

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Limiter keeps a token bucket for each K. A bucket is a single number: the time at which it will
// be full (the generic cell rate algorithm).
//
// Time is divided into periods in which even a bucket in the deepest debt (see Share) becomes full.
// So a bucket that was not used in the current and the previous period is full, and is dropped.
type Limiter[K comparable] struct {
	burst    int
	interval time.Duration // the time in which one token is regained
	fill     time.Duration // the time in which an empty bucket becomes full
	policy   string

	mu       sync.Mutex
	epoch    time.Time           // the durations below count from this time
	latest   time.Duration       // the latest time of a request
	began    time.Duration       // when the current period began
	current  map[K]time.Duration // when each bucket used in the current period is full
	previous map[K]time.Duration // the same for the previous period
	taken    map[K]int           // grants not yet published by Share; nil without Share
}

// New returns a Limiter whose buckets have burst tokens and regain rate tokens a second.
func New[K comparable](rate float64, burst int, now time.Time) *Limiter[K] {
	interval := max(1, time.Duration(float64(time.Second)/rate))
	fill := interval * time.Duration(burst)
	return &Limiter[K]{
		burst: burst, interval: interval, fill: fill,
		policy: fmt.Sprintf("%d;w=%d", burst, max(1, int(math.Round(float64(burst)/rate)))),
		epoch:  now, current: map[K]time.Duration{}, previous: map[K]time.Duration{},
	}
}

// Allowance is the result of Take.
type Allowance struct {
	Granted bool
	// Limit is the bucket's size. Policy is the header RateLimit-Policy: the size and the seconds
	// in which an empty bucket fills.
	Limit     int
	Policy    string
	Remaining int
	// Full is the time until the bucket is full, and Next the time until it has a token; zero if
	// that is so now.
	Full, Next time.Duration
}

// Take takes one token from id's bucket if there is one.
func (l *Limiter[K]) Take(id K, at time.Time) Allowance {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.advance(at)
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

// advance returns a time as a duration since epoch, and starts the next period when the current one
// is over. It never goes back before latest: a request that waited before it was counted has an
// earlier time than its predecessors, at which the tokens that they took would not have been
// regained.
func (l *Limiter[K]) advance(at time.Time) (now time.Duration) {
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

// fullAt returns when id's bucket is full, now or later.
func (l *Limiter[K]) fullAt(id K, now time.Duration) time.Duration {
	full, ok := l.current[id]
	if !ok {
		full = l.previous[id]
	}
	return max(full, now)
}
