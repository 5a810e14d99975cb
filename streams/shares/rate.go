package shares

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// RateConfig describes a Rate.
type RateConfig struct {
	// Name is the value of the metrics' label resource.
	Name string
	// PerSecond is how many tokens a bucket regains in a second, and Burst how many it has when it
	// is full. Without a Burst the Rate is no bound.
	PerSecond float64
	Burst     int
}

// Hourly returns the RateConfig of most uses within an hour, which may be used up at once. 0 is no
// bound.
func Hourly(name string, most int) RateConfig {
	return RateConfig{Name: name, PerSecond: float64(most) / time.Hour.Seconds(), Burst: most}
}

// Daily is Hourly with a day.
func Daily(name string, most int) RateConfig {
	return RateConfig{Name: name, PerSecond: float64(most) / (24 * time.Hour).Seconds(), Burst: most}
}

// Rate bounds what is spent in a time. It keeps a token bucket for each K. A bucket is a single
// number: the time at which it will be full (the generic cell rate algorithm).
//
// Time is divided into periods in which even a bucket in the deepest debt (see ShareRate) becomes
// full. So a bucket that was not used in the current and the previous period is full, and is
// dropped.
type Rate[K comparable] struct {
	burst    int
	account  *account
	interval time.Duration // the time in which one token is regained
	fill     time.Duration // the time in which an empty bucket becomes full
	policy   string

	mu       sync.Mutex
	epoch    time.Time           // the durations below count from this time
	latest   time.Duration       // the latest time of a request
	began    time.Duration       // when the current period began
	current  map[K]time.Duration // when each bucket used in the current period is full
	previous map[K]time.Duration // the same for the previous period
	taken    map[K]int           // grants not yet published by ShareRate; nil without it
}

// NewRate returns a Rate, which the registry reports; a nil registry reports nothing.
func NewRate[K comparable](registry *Registry, cfg RateConfig, now time.Time) *Rate[K] {
	l := &Rate[K]{
		burst: cfg.Burst, account: registry.open(cfg.Name, 0, nil),
		epoch: now, current: map[K]time.Duration{}, previous: map[K]time.Duration{},
	}
	if cfg.Burst > 0 {
		l.interval = max(1, time.Duration(float64(time.Second)/cfg.PerSecond))
		l.fill = l.interval * time.Duration(cfg.Burst)
		seconds := max(1, int(math.Round(float64(cfg.Burst)/cfg.PerSecond)))
		l.policy = fmt.Sprintf("%d;w=%d", cfg.Burst, seconds)
	}
	return l
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

// Burst returns how many tokens a full bucket has.
func (l *Rate[K]) Burst() int { return l.burst }

// Next returns the time until id's bucket has a token; 0 if it has one. It takes none.
func (l *Rate[K]) Next(id K, at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.advance(at)
	return max(0, l.fullAt(id, now)+l.interval-now-l.fill)
}

// Take takes one token from id's bucket if there is one.
func (l *Rate[K]) Take(id K, at time.Time) Allowance { return l.TakeN(id, 1, at) }

// TakeN takes n tokens from id's bucket if it has as many, or if it is full: then the rest is a
// debt, of up to another bucket.
func (l *Rate[K]) TakeN(id K, n int, at time.Time) Allowance {
	if l.burst == 0 {
		return Allowance{Granted: true}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.advance(at)
	full := l.fullAt(id, now)
	a := Allowance{Limit: l.burst, Policy: l.policy}
	price := l.interval * time.Duration(min(n, maxDebt*l.burst))
	if full+min(price, l.fill)-now <= l.fill {
		a.Granted = true
		full += price
		if l.taken != nil {
			l.taken[id] += n
		}
	} else {
		a.Next = full + min(price, l.fill) - now - l.fill
		l.account.heldBack(Spender{ID: fmt.Sprint(id)})
	}
	l.current[id] = full
	a.Full = full - now
	a.Remaining = max(0, int((l.fill-a.Full)/l.interval))
	return a
}

// noticed is how long a wait of Spend is that counts as held back: shorter ones only pace a spender.
const noticed = 100 * time.Millisecond

// Spend takes n tokens also if there are not as many, and returns how long the spender must wait
// before it goes on: until they are regained. So spenders of one bucket wait for each other in the
// order in which they came.
func (l *Rate[K]) Spend(id K, n int, at time.Time) (wait time.Duration) {
	return l.SpendAhead(id, n, l.burst, at)
}

// SpendAhead is Spend of a bucket that has only ahead tokens when it is full: those are spent without
// a wait.
func (l *Rate[K]) SpendAhead(id K, n, ahead int, at time.Time) (wait time.Duration) {
	if l.burst == 0 {
		return 0
	}
	l.Charge(id, n, at)
	l.mu.Lock()
	wait = l.fullAt(id, l.latest) - l.latest - l.interval*time.Duration(min(ahead, l.burst))
	l.mu.Unlock()
	if wait > noticed {
		l.account.heldBack(Spender{ID: fmt.Sprint(id)})
	}
	return max(0, wait)
}

// advance returns a time as a duration since epoch, and starts the next period when the current one
// is over. It never goes back before latest: a request that waited before it was counted has an
// earlier time than its predecessors, at which the tokens that they took would not have been
// regained.
func (l *Rate[K]) advance(at time.Time) (now time.Duration) {
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
func (l *Rate[K]) fullAt(id K, now time.Duration) time.Duration {
	full, ok := l.current[id]
	if !ok {
		full = l.previous[id]
	}
	return max(full, now)
}
