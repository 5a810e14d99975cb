// Package allowance limits how often each id may do something within an hour, in memory.
package allowance

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// maxKept is how many ids are kept before those with their whole allowance left are forgotten.
const maxKept = 10_000

// Hourly is an allowance for each id. It refills evenly within an hour, and may be used up at once.
// It is safe for concurrent use.
type Hourly struct {
	most int

	mu   sync.Mutex
	kept map[string]*rate.Limiter
}

// NewHourly returns an allowance of most uses an hour for each id; 0 is no limit.
func NewHourly(most int) *Hourly { return &Hourly{most: most, kept: map[string]*rate.Limiter{}} }

// Most returns the number of uses an hour.
func (h *Hourly) Most() int { return h.most }

// Take uses one of an id's allowance at that time. When none is left it returns false and the time
// until one is.
func (h *Hourly) Take(id string, now time.Time) (wait time.Duration, ok bool) {
	if h.most == 0 {
		return 0, true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	limiter := h.kept[id]
	if limiter == nil {
		if len(h.kept) >= maxKept {
			h.forget(now)
		}
		limiter = rate.NewLimiter(rate.Limit(float64(h.most)/time.Hour.Seconds()), h.most)
		h.kept[id] = limiter
	}
	if limiter.AllowN(now, 1) {
		return 0, true
	}
	return max(time.Second, time.Hour/time.Duration(h.most)), false
}

func (h *Hourly) forget(now time.Time) {
	for id, limiter := range h.kept {
		if limiter.TokensAt(now) >= float64(h.most) {
			delete(h.kept, id)
		}
	}
}
