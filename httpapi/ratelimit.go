package httpapi

import (
	"math"
	"strconv"
	"sync"
	"time"

	"hubcloud/domain"
)

// limiter keeps one token bucket for each K. A bucket is one number: the time at which it will be full again (the generic cell
// rate algorithm). Full buckets need no memory: a bucket that nothing was taken from for as long as filling takes is full, so
// what has not been touched over a whole period is dropped with it, and what is held is bounded by the clients of two periods.
type limiter[K comparable] struct {
	burst    int
	interval time.Duration // in which one token comes back
	fill     time.Duration // in which an empty bucket fills
	policy   string

	mu       sync.Mutex
	epoch    time.Time           // what the times in the maps count from
	began    time.Duration       // when current was begun
	current  map[K]time.Duration // when each bucket touched in this period is full
	previous map[K]time.Duration // the same of the period before
}

// newLimiter makes buckets of burst tokens into which rate tokens come back a second.
func newLimiter[K comparable](rate float64, burst int, now time.Time) *limiter[K] {
	interval := max(1, time.Duration(float64(time.Second)/rate))
	fill := interval * time.Duration(burst)
	return &limiter[K]{
		burst: burst, interval: interval, fill: fill,
		policy: strconv.Itoa(burst) + ";w=" + strconv.Itoa(max(1, int(math.Round(float64(burst)/rate)))),
		epoch:  now, current: map[K]time.Duration{}, previous: map[K]time.Duration{},
	}
}

// allowance is what take found.
type allowance struct {
	granted   bool
	limit     int
	policy    string
	remaining int
	// full is the time until the bucket is, and next until it has a token: zero when it has one.
	full, next time.Duration
}

// take takes one token from id's bucket when there is one.
func (l *limiter[K]) take(id K, at time.Time) allowance {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := at.Sub(l.epoch)
	if age := now - l.began; age >= l.fill {
		l.previous, l.current, l.began = l.current, map[K]time.Duration{}, now
		if age >= 2*l.fill {
			clear(l.previous)
		}
	}
	full, ok := l.current[id]
	if !ok {
		full = l.previous[id]
	}
	full = max(full, now)
	a := allowance{limit: l.burst, policy: l.policy}
	if full+l.interval-now <= l.fill {
		a.granted = true
		full += l.interval
	} else {
		a.next = full + l.interval - now - l.fill
	}
	l.current[id] = full
	a.full = full - now
	a.remaining = int((l.fill - a.full) / l.interval)
	return a
}

// spend tells the client its allowance, and refuses the request when that is used up.
func (x *exchange) spend(a allowance) error {
	x.setHeader(1, "RateLimit-Limit", strconv.Itoa(a.limit))
	x.setHeader(2, "RateLimit-Remaining", strconv.Itoa(a.remaining))
	x.setHeader(3, "RateLimit-Reset", strconv.Itoa(wholeSeconds(a.full)))
	x.setHeader(4, "RateLimit-Policy", a.policy)
	if a.granted {
		return nil
	}
	return &domain.Error{Code: domain.CodeRateLimited, RetryAfter: a.next,
		Message: "too many requests: wait as long as the header Retry-After says, in seconds"}
}

// quota counts what each key has open at the moment.
type quota struct {
	limit int

	mu   sync.Mutex
	open map[string]int
}

func newQuota(limit int) *quota { return &quota{limit: limit, open: map[string]int{}} }

// acquire counts one more for id, unless that has its limit open.
func (q *quota) acquire(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[id] >= q.limit {
		return false
	}
	q.open[id]++
	return true
}

// release counts one less.
func (q *quota) release(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[id]--; q.open[id] == 0 {
		delete(q.open, id)
	}
}
