package domain

import (
	"slices"
	"time"
)

// MaxHubBurst is the largest Burst of a HubLimit: as many times are remembered of each hub.
const MaxHubBurst = 64

// HubLimit is how often one hub may have the cloud record something that is kept for ever: Burst
// times at once, and PerMinute times a minute in the long run. It is held against the times of what
// was recorded, so restarts and moves to other replicas do not multiply it. The zero value allows
// everything.
type HubLimit struct {
	PerMinute int
	// Burst is at most MaxHubBurst.
	Burst int
}

// wait returns how long a hub must wait before it may do once more what it did at those times. Zero
// means that it may do it now. Times after now, which a clock that was put back leaves, do not
// count.
func (l HubLimit) wait(times []time.Time, now time.Time) time.Duration {
	if l.PerMinute <= 0 || l.Burst <= 0 {
		return 0
	}
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	perSecond, most := float64(l.PerMinute)/60, float64(l.Burst)
	left := most
	if len(times) >= MaxHubBurst {
		left = 0 // what was before the oldest of them is forgotten: it may have used up everything
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

// rememberTime appends to the times that a HubLimit is held against, without touching the former
// list.
func rememberTime(times []time.Time, t time.Time) []time.Time {
	times = append(slices.Clone(times), t)
	return times[max(0, len(times)-MaxHubBurst):]
}
