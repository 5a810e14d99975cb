package calls

import (
	"cmp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
)

// Defaults of Bounds.
const (
	DefaultMaxCalls       = 16_384
	DefaultMaxCallsPerOrg = 2_048
	DefaultMaxCallsPerHub = 256
)

// placesRetryAfter is how long a caller waits after a refused call. Calls end within the hub's
// time-out, most of them sooner.
const placesRetryAfter = time.Second

// Bounds limit the calls under way at this replica. A hub that does not answer keeps each call for
// the whole time-out.
type Bounds struct {
	// Total is for all organizations together. Defaults to DefaultMaxCalls.
	Total int
	// PerOrg is for one organization, which may also never hold more than half of what the others
	// leave of Total. Defaults to DefaultMaxCallsPerOrg.
	PerOrg int
	// PerHub is for one hub. Defaults to DefaultMaxCallsPerHub.
	PerHub int
}

// Places bounds the calls under way: commands, live calls for devices, and requests that wait for
// the same command. Safe for concurrent use.
type Places struct {
	bounds  Bounds
	refused *prometheus.CounterVec

	mu    sync.Mutex
	total int
	orgs  map[string]int
	hubs  map[domain.HubID]int
}

// The values of the label bound of hubcloud_hubbridge_calls_refused_total.
const (
	boundHub = "hub"
	boundOrg = "organization"
	boundAll = "all"
)

// NewPlaces returns the places of one replica. Its metrics are registered with r, unless that is
// nil.
func NewPlaces(b Bounds, r prometheus.Registerer) *Places {
	p := &Places{
		bounds: Bounds{
			Total: cmp.Or(
				b.Total, DefaultMaxCalls,
			), PerOrg: cmp.Or(b.PerOrg, DefaultMaxCallsPerOrg),
			PerHub: cmp.Or(b.PerHub, DefaultMaxCallsPerHub),
		},
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hubcloud_hubbridge_calls_refused_total",
			Help: "Commands and live calls answered 429 because too many were under way, by the " +
				"bound that was reached: of the hub, of the organization, " +
				"or of all (no fair share left). A rise is one consumer that asks hubs that do not answer.",
		}, []string{"bound"}),
		orgs: map[string]int{}, hubs: map[domain.HubID]int{},
	}
	for _, bound := range []string{boundHub, boundOrg, boundAll} {
		p.refused.WithLabelValues(bound)
	}
	if r != nil {
		r.MustRegister(p.refused)
	}
	return p
}

// Take counts one more call to a hub of an organization, until release is called, which must happen
// once. Over a bound it does not wait: the error is a *domain.Error rate_limited that names the
// bound.
func (p *Places) Take(org string, hub domain.HubID) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.check(org, hub); err != nil {
		return nil, err
	}
	p.total++
	p.orgs[org]++
	p.hubs[hub]++
	return func() { p.release(org, hub) }, nil
}

// check reports the bound that one more call would exceed.
func (p *Places) check(org string, hub domain.HubID) error {
	left := p.bounds.Total - (p.total - p.orgs[org])
	switch {
	case p.hubs[hub] >= p.bounds.PerHub:
		return p.refuse(
			boundHub,
			"the hub has %d calls under way; at most %d are allowed (--calls-per-hub). Wait for "+
				"answers, or for the hub's time-out",
			p.hubs[hub],
			p.bounds.PerHub,
		)
	case p.orgs[org] >= p.bounds.PerOrg:
		return p.refuse(
			boundOrg,
			"the organization has %d calls to hubs under way; at most %d are allowed (--calls-per-org)",
			p.orgs[org], p.bounds.PerOrg,
		)
	case p.orgs[org] >= (left+1)/2:
		return p.refuse(
			boundAll,
			"the organization has %d calls to hubs under way, its share of the %d that are allowed in all (--calls)",
			p.orgs[org], p.bounds.Total,
		)
	}
	return nil
}

func (p *Places) refuse(bound, format string, args ...any) error {
	p.refused.WithLabelValues(bound).Inc()
	err := domain.Errorf(domain.CodeRateLimited, format, args...)
	err.RetryAfter = placesRetryAfter
	return err
}

func (p *Places) release(org string, hub domain.HubID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	if p.orgs[org]--; p.orgs[org] == 0 {
		delete(p.orgs, org)
	}
	if p.hubs[hub]--; p.hubs[hub] == 0 {
		delete(p.hubs, hub)
	}
}
