package identity

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"hubcloud/domain"
)

// connectLimitsKept is the number of remembered hubs at which limits that are not used are removed.
const connectLimitsKept = 4096

// connectLimits limits the rate of each hub's connections. It is safe for concurrent use.
type connectLimits struct {
	limit domain.HubLimit

	mu   sync.Mutex
	hubs map[domain.HubID]*rate.Limiter
	// most is the number of hubs at which unused limits are removed next.
	most int
}

func newConnectLimits(limit domain.HubLimit) *connectLimits {
	return &connectLimits{
		limit: limit,
		hubs:  map[domain.HubID]*rate.Limiter{},
		most:  connectLimitsKept,
	}
}

// allow reports whether the hub may connect now, and counts the connection if so.
func (l *connectLimits) allow(hub domain.HubID, now time.Time) bool {
	if l.limit.PerMinute <= 0 || l.limit.Burst <= 0 {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.hubs) >= l.most {
		for other, limiter := range l.hubs {
			if limiter.TokensAt(now) >= float64(l.limit.Burst) {
				delete(l.hubs, other) // a full bucket is the same as none
			}
		}
		l.most = max(connectLimitsKept, 2*len(l.hubs))
	}
	limiter, ok := l.hubs[hub]
	if !ok {
		limiter = rate.NewLimiter(rate.Limit(float64(l.limit.PerMinute)/60), l.limit.Burst)
		l.hubs[hub] = limiter
	}
	return limiter.AllowN(now, 1)
}
