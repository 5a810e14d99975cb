package shares

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"sync"
	"time"

	"hubcloud/domain"
)

// poolRetryAfter is the Retry-After of a rejected request: what is held is soon released.
const poolRetryAfter = time.Second

// maxIdle is how many organizations, and spenders of one, a Pool remembers that hold nothing.
const maxIdle = 128

// Spender is who uses a share.
type Spender struct {
	// Org is the organization; "" for addresses, and for the service itself.
	Org string
	// ID is the key, hub, member or address.
	ID string
}

// AddressBlock returns the block of addresses that counts as one spender: an IPv4 address, or an IPv6
// /64, which is what one client usually has. Invalid addresses share the zero Prefix.
func AddressBlock(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	block, _ := addr.Prefix(bits) // fails only for the zero address
	return block
}

// Limits bound what is held of a Pool. A zero PerOrg or PerID is no bound.
type Limits struct {
	// Total is for all organizations together, each of which gets a part of what the others leave:
	// all but one Leave-th of it. Leave defaults to 2, a half.
	Total, Leave int64
	// PerOrg is for one organization, and PerID for one of its spenders.
	PerOrg, PerID int64
	// Waiting is how many requests of an organization may wait in Pool.Wait: of each of its spenders
	// that have a name, half of what the others leave.
	Waiting int
}

// PoolConfig describes a Pool.
type PoolConfig struct {
	// Name is the value of the metrics' label resource.
	Name string
	// What completes the sentence "too many …" to clients, and Of names a spender: "hub".
	What, Of string
	Limits   Limits
}

// Pool bounds what is held at the same time.
type Pool struct {
	cfg     PoolConfig
	account *account

	mu   sync.Mutex
	used int64
	orgs map[string]*holder
	// waiting counts the requests that wait.
	waiting int
	// served counts what was granted: the order in which spenders were served.
	served uint64
}

// holder is an organization, or a spender in one.
type holder struct {
	used   int64
	served uint64
	// spenders and waiting are an organization's.
	spenders map[string]*holder
	waiting  []*waiter
}

// waiter is a request that waits in Pool.Wait.
type waiter struct {
	id      string
	granted chan struct{}
}

// NewPool returns a Pool, which the registry reports; a nil registry reports nothing.
func NewPool(registry *Registry, cfg PoolConfig) *Pool {
	cfg.Limits.Leave = cmp.Or(cfg.Limits.Leave, 2)
	p := &Pool{cfg: cfg, orgs: map[string]*holder{}}
	p.account = registry.open(cfg.Name, cfg.Limits.Total, p.holders)
	return p
}

// Limits returns the bounds.
func (p *Pool) Limits() Limits { return p.cfg.Limits }

// Take counts n more for a spender until release is called, exactly once. Beyond a bound it returns
// rate_limited.
func (p *Pool) Take(s Spender, n int64) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.check(s, n); err != nil {
		p.account.heldBack(s)
		return nil, err
	}
	p.count(s, n)
	return func() { p.Adjust(s, -n) }, nil
}

// Wait is Take of one that waits for its turn. Beyond Limits.Waiting, and when ctx ends first, it
// returns rate_limited.
func (p *Pool) Wait(ctx context.Context, s Spender) (release func(), err error) {
	p.mu.Lock()
	rejected := p.check(s, 1)
	org := p.orgs[s.Org]
	if rejected == nil {
		p.count(s, 1)
		p.mu.Unlock()
		return func() { p.Adjust(s, -1) }, nil
	}
	if org != nil && !org.mayWait(s.ID, p.cfg.Limits.Waiting) {
		p.account.heldBack(s)
		p.mu.Unlock()
		return nil, rejected
	}
	w := &waiter{id: s.ID, granted: make(chan struct{})}
	org = p.org(s.Org)
	org.waiting = append(org.waiting, w)
	p.waiting++
	p.mu.Unlock()
	select {
	case <-w.granted:
		return func() { p.Adjust(s, -1) }, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-w.granted: // at the same moment
		p.countAndServe(s, -1)
	default:
		p.remove(org, w)
		p.forget(s)
	}
	p.account.heldBack(s)
	return nil, rejected
}

// mayWait reports whether one more request of a spender of the organization may wait.
func (h *holder) mayWait(id string, most int) bool {
	own := 0
	for _, w := range h.waiting {
		if w.id == id && id != "" {
			own++
		}
	}
	others := len(h.waiting) - own
	return own+others < most && (own == 0 || 2*own < most-others)
}

// Adjust counts n more for a spender, or fewer if n is negative, without regard to the bounds.
func (p *Pool) Adjust(s Spender, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.countAndServe(s, n)
}

// HeldBack counts that a spender was held back by who asked Held.
func (p *Pool) HeldBack(s Spender) { p.account.heldBack(s) }

// Replace counts what all spenders hold anew, without regard to the bounds: for what is measured,
// rather than taken and released.
func (p *Pool) Replace(held map[Spender]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for org, o := range p.orgs {
		for id, spender := range o.spenders {
			s := Spender{org, id}
			if _, known := held[s]; !known && spender.used != 0 {
				p.countAndServe(s, -spender.used)
			}
		}
	}
	for s, n := range held {
		used, _ := p.held(s)
		p.countAndServe(s, n-used)
	}
}

// Held returns what a spender holds, what its organization holds, and how much that may hold.
func (p *Pool) Held(s Spender) (spender, org, share int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	spender, org = p.held(s)
	return spender, org, p.share(org)
}

func (p *Pool) held(s Spender) (spender, org int64) {
	o := p.orgs[s.Org]
	if o == nil {
		return 0, 0
	}
	if h := o.spenders[s.ID]; h != nil {
		spender = h.used
	}
	return spender, o.used
}

// share returns how much an organization may hold that holds ofOrg: its part of what the others
// leave.
func (p *Pool) share(ofOrg int64) int64 {
	left := p.cfg.Limits.Total - (p.used - ofOrg)
	share := left - left/p.cfg.Limits.Leave
	if most := p.cfg.Limits.PerOrg; most > 0 {
		share = min(share, most)
	}
	return share
}

// check returns an error if n more would exceed a bound: rate_limited to a spender that has used up
// its own, and service_unavailable if others hold what is missing. An organization that holds
// nothing may exceed its share, up to twice the total: something is left for each.
func (p *Pool) check(s Spender, n int64) error {
	spender, org := p.held(s)
	limits, what := p.cfg.Limits, p.cfg.What
	switch {
	case limits.PerID > 0 && spender+n > limits.PerID:
		return domain.RateLimited(
			poolRetryAfter, "too many %s: at most %d of one %s", what, limits.PerID, p.cfg.Of,
		)
	case org+n <= p.share(org):
		return nil
	case org == 0 && s.Org != "" && p.used+n <= 2*limits.Total:
		return nil
	case limits.PerOrg > 0 && org+n > limits.PerOrg:
		return domain.RateLimited(
			poolRetryAfter, "too many %s: at most %d of one organization", what, limits.PerOrg,
		)
	case org == 0 || s.Org == "":
		return domain.Unavailable("too many %s", what)
	default:
		return domain.RateLimited(
			poolRetryAfter, "too many %s: the organization has its share of %d", what, limits.Total,
		)
	}
}

func (p *Pool) org(name string) *holder {
	org := p.orgs[name]
	if org == nil {
		org = &holder{spenders: map[string]*holder{}}
		p.orgs[name] = org
	}
	return org
}

func (p *Pool) count(s Spender, n int64) {
	org := p.org(s.Org)
	spender := org.spenders[s.ID]
	if spender == nil {
		spender = new(holder)
		org.spenders[s.ID] = spender
	}
	p.used, org.used, spender.used = p.used+n, org.used+n, spender.used+n
	if n > 0 {
		p.served++
		org.served, spender.served = p.served, p.served
	}
	p.forget(s)
}

// forget removes a spender that holds nothing, and its organization if that does not either, once
// there are many: most will come again.
func (p *Pool) forget(s Spender) {
	org := p.orgs[s.Org]
	spender := org.spenders[s.ID]
	if spender != nil && spender.used == 0 && len(org.spenders) > maxIdle {
		delete(org.spenders, s.ID)
	}
	if org.used == 0 && len(org.waiting) == 0 && len(p.orgs) > maxIdle {
		delete(p.orgs, s.Org)
	}
}

// countAndServe counts, and grants what waits and may be granted now.
func (p *Pool) countAndServe(s Spender, n int64) {
	p.count(s, n)
	for n < 0 && p.waiting > 0 {
		name, w := p.next()
		if w == nil {
			return
		}
		p.remove(p.orgs[name], w)
		p.count(Spender{name, w.id}, 1)
		close(w.granted)
	}
}

// next returns the request that is served next: of the organization that holds least, and of its
// spender that holds least; of equals, of the one that was served longest ago. It returns nil if
// none may be served.
func (p *Pool) next() (name string, w *waiter) {
	var best *holder
	for candidate, org := range p.orgs {
		if best != nil && !org.before(best) {
			continue
		}
		if found := p.nextOf(candidate, org); found != nil {
			name, w, best = candidate, found, org
		}
	}
	return name, w
}

func (p *Pool) nextOf(name string, org *holder) (w *waiter) {
	var best *holder
	for _, candidate := range org.waiting {
		spender := org.spenders[candidate.id]
		if spender == nil {
			spender = new(holder)
		}
		if (best == nil || spender.before(best)) && p.check(Spender{name, candidate.id}, 1) == nil {
			w, best = candidate, spender
		}
	}
	return w
}

// before reports whether a holder is served before another one.
func (h *holder) before(other *holder) bool {
	return h.used < other.used || h.used == other.used && h.served < other.served
}

// remove removes a waiter of an organization.
func (p *Pool) remove(org *holder, w *waiter) {
	org.waiting = slices.DeleteFunc(org.waiting, func(other *waiter) bool { return other == w })
	p.waiting--
}

// holders returns what is held in all, and by each organization.
func (p *Pool) holders() (used int64, byOrg map[string]int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	byOrg = make(map[string]int64, len(p.orgs))
	for name, org := range p.orgs {
		if org.used > 0 {
			byOrg[name] = org.used
		}
	}
	return p.used, byOrg
}
