package live

import "sync"

// quota counts what each member has open. The zero value counts from nothing.
type quota struct {
	mu    sync.Mutex
	inUse map[string]int
}

// acquire takes a place; false: there are limit already.
func (q *quota) acquire(member string, limit int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inUse[member] >= limit {
		return false
	}
	if q.inUse == nil {
		q.inUse = map[string]int{}
	}
	q.inUse[member]++
	return true
}

func (q *quota) release(member string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.inUse[member]--; q.inUse[member] == 0 {
		delete(q.inUse, member)
	}
}
