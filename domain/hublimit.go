package domain

import (
	"slices"
	"time"
)

// MaxHubBurst is the largest Burst of a HubLimit. A hub's state remembers as many times.
const MaxHubBurst = 64

// HubLimit limits how often one hub may cause a fact to be recorded: Burst times at once, and
// PerMinute times a minute in the long run. It is computed from the times of the recorded facts, so
// that restarts and moves to other replicas do not raise it. The zero value does not limit.
type HubLimit struct {
	PerMinute int
	// Burst is at most MaxHubBurst.
	Burst int
}

// wait returns how long a hub must wait before the next fact after those recorded at times; zero if
// it need not wait. Times after now, left by a clock that was set back, do not count.
func (l HubLimit) wait(times []time.Time, now time.Time) time.Duration {
	if l.PerMinute <= 0 || l.Burst <= 0 {
		return 0
	}
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	perSecond, most := float64(l.PerMinute)/60, float64(l.Burst)
	left := most
	if len(times) >= MaxHubBurst {
		left = 0 // forgotten facts before the oldest may have used up the burst
	}
	last := now
	if len(times) > 0 {
		last = times[0]
	}
	for _, t := range times {
		if t.After(now) {
			break
		}
		left = min(most, left+perSecond*t.Sub(last).Seconds())
		left, last = max(left-1, 0), t
	}
	left += perSecond * max(now.Sub(last).Seconds(), 0)
	if left >= 1 {
		return 0
	}
	return time.Duration((1 - left) / perSecond * float64(time.Second))
}

// rememberTime returns times with t, at most MaxHubBurst of them. It does not change times.
func rememberTime(times []time.Time, t time.Time) []time.Time {
	times = append(slices.Clone(times), t)
	return times[max(0, len(times)-MaxHubBurst):]
}
