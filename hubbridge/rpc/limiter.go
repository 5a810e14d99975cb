package rpc

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hubcloud/domain"
)

// Defaults of Limits.
const (
	DefaultMaxCalls       = 16_384
	DefaultMaxCallsPerOrg = 2_048
	DefaultMaxCallsPerHub = 256
)

// limiterRetryAfter is the Retry-After of a rejected call. Calls end within the hub's timeout, most
// of them sooner.
const limiterRetryAfter = time.Second

// Limits bound the calls in flight at one replica. A hub that does not answer keeps each call in
// flight until its timeout.
type Limits struct {
	// Total is for all organizations together. Defaults to DefaultMaxCalls.
	Total int
	// PerOrg is for one organization, which may also never hold more than half of what the other
	// organizations leave of Total. Defaults to DefaultMaxCallsPerOrg.
	PerOrg int
	// PerHub is for one hub. Defaults to DefaultMaxCallsPerHub.
	PerHub int
}

// WithDefaults returns a copy of l with the defaults for zero fields.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Total:  cmp.Or(l.Total, DefaultMaxCalls),
		PerOrg: cmp.Or(l.PerOrg, DefaultMaxCallsPerOrg),
		PerHub: cmp.Or(l.PerHub, DefaultMaxCallsPerHub),
	}
}

// Limiter bounds the calls in flight: commands, live calls for devices, and requests that wait for
// the same command. It never waits. It is safe for concurrent use.
type Limiter struct {
	limits   Limits
	rejected *prometheus.CounterVec

	mu    sync.Mutex
	total int
	orgs  map[string]int
	hubs  map[domain.HubID]int
}

// The values of the label bound of hubcloud_hubbridge_calls_rejected_total.
const (
	boundHub = "hub"
	boundOrg = "organization"
	boundAll = "all"
)

// NewLimiter returns a Limiter for one replica. Its metrics are registered with r; a nil r
// registers nothing.
func NewLimiter(limits Limits, r prometheus.Registerer) *Limiter {
	metric := promauto.With(r)
	l := &Limiter{
		limits: limits.WithDefaults(),
		rejected: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_calls_rejected_total",
			Help: "Commands and live calls answered 429 because too many were in flight, by the " +
				"limit that was reached: hub, organization, or all (the organization has its " +
				"fair share of all calls). A rise means that one consumer calls hubs that do not " +
				"answer.",
		}, []string{"bound"}),
		orgs: map[string]int{},
		hubs: map[domain.HubID]int{},
	}
	for _, bound := range []string{boundHub, boundOrg, boundAll} {
		l.rejected.WithLabelValues(bound)
	}
	return l
}

// Acquire counts one more call to a hub of an organization until release is called, which must
// happen exactly once. Over a bound the error is a *domain.Error rate_limited that names the bound.
func (l *Limiter) Acquire(org string, hub domain.HubID) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.check(org, hub); err != nil {
		return nil, err
	}
	l.total++
	l.orgs[org]++
	l.hubs[hub]++
	return func() { l.release(org, hub) }, nil
}

// check returns an error if one more call would exceed a bound.
func (l *Limiter) check(org string, hub domain.HubID) error {
	ofOrg, ofHub := l.orgs[org], l.hubs[hub]
	switch {
	case ofHub >= l.limits.PerHub:
		return l.reject(
			boundHub,
			"the hub has %d calls in flight; at most %d are allowed. Wait for answers, or for the "+
				"hub's timeout", ofHub, l.limits.PerHub,
		)
	case ofOrg >= l.limits.PerOrg:
		return l.reject(
			boundOrg,
			"the organization has %d calls to hubs in flight; at most %d are allowed", ofOrg,
			l.limits.PerOrg,
		)
	case ofOrg >= l.fairShare(l.total-ofOrg):
		return l.reject(
			boundAll,
			"the organization has %d calls to hubs in flight, its share of the %d that are "+
				"allowed in all", ofOrg, l.limits.Total,
		)
	}
	return nil
}

// fairShare returns how many calls an organization may have in flight while the other organizations
// have ofOthers: half of what those leave of Total. So however many calls some organizations have
// in flight, another one can still make calls.
func (l *Limiter) fairShare(ofOthers int) int { return (l.limits.Total - ofOthers + 1) / 2 }

func (l *Limiter) reject(bound, format string, args ...any) error {
	l.rejected.WithLabelValues(bound).Inc()
	return domain.RateLimited(limiterRetryAfter, format, args...)
}

func (l *Limiter) release(org string, hub domain.HubID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total--
	if l.orgs[org]--; l.orgs[org] == 0 {
		delete(l.orgs, org)
	}
	if l.hubs[hub]--; l.hubs[hub] == 0 {
		delete(l.hubs, hub)
	}
}
