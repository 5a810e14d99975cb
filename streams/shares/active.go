package shares

import (
	"sync"
	"time"
)

// activeFor is how long an organization counts as active after it did something.
const activeFor = time.Second

// active are the two organizations that were active last.
type active struct {
	mu   sync.Mutex
	orgs [2]string
	at   [2]time.Time
}

// Active records that an organization uses the service: it asks for something, its hubs have events, or its
// readers get some.
func (l *Registry) Active(org string, at time.Time) {
	if l == nil {
		return
	}
	u := &l.active
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.orgs[0] != org {
		u.orgs[1], u.at[1] = u.orgs[0], u.at[0]
	}
	u.orgs[0], u.at[0] = org, at
}

// OthersActive reports whether another organization was active in the last second, so that what
// organizations share is scarce.
func (l *Registry) OthersActive(org string, at time.Time) bool {
	if l == nil {
		return false
	}
	u := &l.active
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.at[0]
	if u.orgs[0] == org {
		last = u.at[1]
	}
	return at.Sub(last) < activeFor
}
