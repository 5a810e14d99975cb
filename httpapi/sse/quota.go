package sse

import "sync"

// Quota counts what each owner has open, up to a limit that is the same for all.
type Quota struct {
	limit int

	mu   sync.Mutex
	open map[string]int
}

// NewQuota returns a Quota with nothing open.
func NewQuota(limit int) *Quota { return &Quota{limit: limit, open: map[string]int{}} }

// Acquire counts one more for owner. It returns false, and counts nothing, if owner has reached the
// limit.
func (q *Quota) Acquire(owner string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[owner] >= q.limit {
		return false
	}
	q.open[owner]++
	return true
}

// Release counts one less for owner. It must be called once for each successful Acquire.
func (q *Quota) Release(owner string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open[owner]--; q.open[owner] == 0 {
		delete(q.open, owner)
	}
}
