package httpapi

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/httpapi/ratelimit"
)

// spendOfAddress spends of the allowance of the client's address.
func (x *exchange) spendOfAddress() error {
	return x.spend(
		x.api.addresses.Take(addressBlock(x.remote), x.start), x.api.metrics.limited.address,
	)
}

// spend tells the client its allowance, and refuses the request, which limited counts, when that is
// used up.
func (x *exchange) spend(a ratelimit.Allowance, limited prometheus.Counter) error {
	x.setHeader(1, "RateLimit-Limit", strconv.Itoa(a.Limit))
	x.setHeader(2, "RateLimit-Remaining", strconv.Itoa(a.Remaining))
	x.setHeader(3, "RateLimit-Reset", strconv.Itoa(wholeSeconds(a.Full)))
	x.setHeader(4, "RateLimit-Policy", a.Policy)
	if a.Granted {
		return nil
	}
	limited.Inc()
	return &domain.Error{Code: domain.CodeRateLimited, RetryAfter: a.Next,
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
