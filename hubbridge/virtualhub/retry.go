package virtualhub

import (
	"math/rand/v2"
	"time"
)

// backoff is the wait between attempts: it doubles from least to most and is spread by half to
// either side, so that hubs that lost their broker together do not come back together. A takeover
// within a second of another is held by the broker and then closed, so least had better be a
// second.
type backoff struct {
	least, most time.Duration
	failures    int
}

func (b *backoff) next() time.Duration {
	wait := b.most
	if b.failures < 16 {
		wait = min(b.most, b.least<<b.failures)
	}
	b.failures++
	return wait/2 + rand.N(wait+1)
}

func (b *backoff) reset() { b.failures = 0 }

// admission decides when a hub that the broker refuses enrols again: at once after a restart,
// otherwise once in a while. The zero admission is that of a hub that has just been started.
type admission struct {
	every time.Duration
	// next is when it may enrol again; zero: not known, since it was let in.
	next  time.Time
	letIn bool
	doubt int // endings that may be a refusal, in a row
}

// restarted begins anew.
func (a *admission) restarted() { *a = admission{every: a.every} }

// connected notes that the broker took the hub.
func (a *admission) connected() { a.letIn, a.next, a.doubt = true, time.Time{}, 0 }

// refused notes that the broker did not, and says whether to enrol now. certain is false for a
// connection that was only closed: that may be a takeover being held off or a broker going down, so
// it counts the second time in a row.
func (a *admission) refused(certain bool, now time.Time) bool {
	if a.doubt++; !certain && a.doubt < 2 {
		return false
	}
	if a.letIn && a.next.IsZero() {
		a.next = now.Add(a.every)
	}
	return !now.Before(a.next)
}

// unreachable notes that no broker was found where the certificate says, and says whether to enrol
// now: a hub that has been moved or whose cloud has a new address learns of it that way, but only
// after a restart.
func (a *admission) unreachable() bool {
	a.doubt++
	return !a.letIn && a.next.IsZero() && a.doubt >= 3
}

// enrolled notes an attempt to enrol.
func (a *admission) enrolled(now time.Time) { a.next, a.doubt = now.Add(a.every), 0 }
