package httpapi

import (
	"container/list"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

const (
	// stalledAfter is how long a client must have been waited for before it counts as stalled.
	stalledAfter = time.Second
	// stalledSearchPause is the shortest time between two searches for stalled clients that found
	// none.
	stalledSearchPause = 100 * time.Millisecond
)

// connections bounds the connections of a listener, per address and in all. A new connection beyond
// a bound replaces the one that has been idle longest: one that waits for a request or for the rest
// of a request's body. If none is idle, it replaces the one whose client has stalled longest: while
// reading a response, of which it may have asked for several over HTTP/2. If there is none either,
// the new connection is rejected. Trusted proxies have no bound per address: they carry the
// connections of many clients.
type connections struct {
	limit, perAddress int
	isProxy           func(netip.Addr) bool
	metrics           connectionMetrics

	mu   sync.Mutex
	open map[*conn]struct{}
	// idle holds the idle connections, longest idle first.
	idle      *list.List
	byAddress map[netip.Prefix]*addressConnections
	// searched is when the last search for a stalled client found none.
	searched time.Time
}

// addressConnections are the connections from one address.
type addressConnections struct {
	open     int
	idle     *list.List
	searched time.Time
}

func newConnections(
	limit, perAddress int, isProxy func(netip.Addr) bool, m connectionMetrics,
) *connections {
	return &connections{
		limit: limit, perAddress: perAddress, isProxy: isProxy, metrics: m,
		open: map[*conn]struct{}{}, idle: list.New(),
		byAddress: map[netip.Prefix]*addressConnections{},
	}
}

var (
	errAddressConnections = domain.RateLimited(
		time.Second,
		"too many connections are open from this address; close some, or send several "+
			"requests on one",
	)
	errAllConnections = domain.Unavailable("too many connections are open")
)

// admit adds a connection, which is idle at first. It returns the connection that the caller must
// close to make room, if any, or the error to answer with.
func (cs *connections) admit(c *conn) (victim *conn, err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	addr, _ := parseAddress(c.RemoteAddr().String())
	if !cs.isProxy(addr) {
		c.block = shares.AddressBlock(addr)
		at := cs.byAddress[c.block]
		if at != nil && at.open >= cs.perAddress {
			if victim = cs.findVictim(at.idle, c.block, &at.searched); victim == nil {
				cs.metrics.rejected.address.Inc()
				return nil, errAddressConnections
			}
			cs.metrics.evicted.address.Inc()
		}
	}
	if victim == nil && len(cs.open) >= cs.limit {
		if victim = cs.findVictim(cs.idle, netip.Prefix{}, &cs.searched); victim == nil {
			cs.metrics.rejected.all.Inc()
			return nil, errAllConnections
		}
		cs.metrics.evicted.all.Inc()
	}
	if victim != nil {
		cs.removeLocked(victim)
	}
	cs.open[c] = struct{}{}
	if c.block.IsValid() {
		at := cs.byAddress[c.block]
		if at == nil {
			at = &addressConnections{idle: list.New()}
			cs.byAddress[c.block] = at
		}
		at.open++
	}
	cs.markIdle(c)
	cs.metrics.open.Set(float64(len(cs.open)))
	return victim, nil
}

// findVictim returns the connection that has waited for its client longest: the first idle one, or
// else the one that has stalled longest, among the connections of block, or of all if block is the
// zero value. It returns nil if there is none.
func (cs *connections) findVictim(
	idle *list.List, block netip.Prefix, searched *time.Time,
) (victim *conn) {
	if front := idle.Front(); front != nil {
		return front.Value.(*conn)
	}
	now := time.Now()
	if now.Sub(*searched) < stalledSearchPause {
		return nil
	}
	earliest := now.Add(-stalledAfter).UnixNano()
	for c := range cs.open {
		since := c.stalledSince()
		if since != 0 && since <= earliest && (!block.IsValid() || c.block == block) {
			victim, earliest = c, since
		}
	}
	if victim == nil {
		*searched = now
	}
	return victim
}

// markIdle moves c to the end of the lists of idle connections, if it is not in them.
func (cs *connections) markIdle(c *conn) {
	if c.idle == nil {
		c.idle = cs.idle.PushBack(c)
		if at := cs.byAddress[c.block]; at != nil {
			c.idleAtAddress = at.idle.PushBack(c)
		}
	}
}

// markBusy takes c out of the lists of idle connections.
func (cs *connections) markBusy(c *conn) {
	if c.idle != nil {
		cs.idle.Remove(c.idle)
		if at := cs.byAddress[c.block]; at != nil {
			at.idle.Remove(c.idleAtAddress)
		}
		c.idle, c.idleAtAddress = nil, nil
	}
}

// stateChanged records a state of the server's that a connection has entered.
func (cs *connections) stateChanged(c *conn, state http.ConnState) {
	switch state {
	case http.StateIdle:
		cs.setIdle(c, true)
	case http.StateActive:
		cs.setIdle(c, false)
	}
}

// setIdle marks a connection as idle or busy.
func (cs *connections) setIdle(c *conn, idle bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, ok := cs.open[c]; !ok {
		return
	}
	if idle {
		cs.markIdle(c)
	} else {
		cs.markBusy(c)
	}
}

// remove removes a connection. Removing it again does nothing.
func (cs *connections) remove(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.removeLocked(c)
}

func (cs *connections) removeLocked(c *conn) {
	if _, ok := cs.open[c]; !ok {
		return
	}
	cs.markBusy(c)
	delete(cs.open, c)
	if at := cs.byAddress[c.block]; at != nil {
		if at.open--; at.open == 0 {
			delete(cs.byAddress, c.block)
		}
	}
	cs.metrics.open.Set(float64(len(cs.open)))
}

// evict closes the connection that has waited for its client longest, to free a file descriptor. It
// reports whether there was one.
func (cs *connections) evict() bool {
	cs.mu.Lock()
	victim := cs.findVictim(cs.idle, netip.Prefix{}, &cs.searched)
	if victim != nil {
		cs.removeLocked(victim)
		cs.metrics.evicted.files.Inc()
	}
	cs.mu.Unlock()
	if victim == nil {
		return false
	}
	_ = victim.raw.Close()
	return true
}
