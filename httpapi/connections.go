package httpapi

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"hubcloud/domain"
)

const (
	// connectionBuffer is the room that a connection has in the kernel for what its client has not
	// taken. Left to itself the kernel gives a client that does not read megabytes.
	connectionBuffer = 128 << 10
	// maxLeaving is how many refused connections are let go of in order at once; others are closed
	// at once.
	maxLeaving = 64
	// leaveTimeout bounds the answer to a connection that is refused.
	leaveTimeout = time.Second
	// writeStalled is after how long a client counts as one that does not read.
	writeStalled = time.Second
	// stalledPause is the shortest pause between two vain searches for clients that do not read.
	stalledPause = 100 * time.Millisecond
	// evictionPause is the pause when open files have run out and there is no idle connection to
	// close.
	evictionPause = 50 * time.Millisecond
)

// connections bounds the connections of a listener, from each address and in all. Where one would
// be too many, the connection that has been idle for longest is closed: one on which a request is
// yet to come whole, its body too. If there is none, it is the one whose client has left an answer
// unread for longest. Only when all are busy is the new one refused. A trusted proxy has no bound
// of its own: it brings the connections of many clients.
type connections struct {
	limit, perAddress int
	proxy             func(netip.Addr) bool
	metrics           connectionMetrics

	mu   sync.Mutex
	open map[*conn]struct{}
	// idle has the idle connections, longest idle first.
	idle *list.List
	from map[netip.Prefix]*addressConnections
	// searched is when all connections were last searched in vain for one that does not read.
	searched time.Time
}

// addressConnections are those from one address.
type addressConnections struct {
	open     int
	idle     *list.List
	searched time.Time
}

func newConnections(
	limit, perAddress int, proxy func(netip.Addr) bool, m connectionMetrics,
) *connections {
	return &connections{
		limit: limit, perAddress: perAddress, proxy: proxy, metrics: m,
		open: map[*conn]struct{}{}, idle: list.New(), from: map[netip.Prefix]*addressConnections{},
	}
}

var (
	errAddressConnections = &domain.Error{Code: domain.CodeRateLimited, RetryAfter: time.Second,
		Message: "too many connections are open from this address: close some, or use them for several requests"}
	errAllConnections = domain.Unavailable("too many connections are open")
)

// admit takes a connection in, idle. It returns the connection that is to be closed for it, if any,
// or an error if there is no place.
func (cs *connections) admit(c *conn) (victim *conn, err error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	addr, _ := parseAddress(c.RemoteAddr().String())
	if !cs.proxy(addr) {
		c.block = addressBlock(addr)
		at := cs.from[c.block]
		if at != nil && at.open >= cs.perAddress {
			if victim = cs.longestWaiting(at.idle, c.block, &at.searched); victim == nil {
				cs.metrics.refused.address.Inc()
				return nil, errAddressConnections
			}
			cs.metrics.evicted.address.Inc()
		}
	}
	if victim == nil && len(cs.open) >= cs.limit {
		if victim = cs.longestWaiting(cs.idle, netip.Prefix{}, &cs.searched); victim == nil {
			cs.metrics.refused.all.Inc()
			return nil, errAllConnections
		}
		cs.metrics.evicted.all.Inc()
	}
	if victim != nil {
		cs.remove(victim)
	}
	cs.open[c] = struct{}{}
	if c.block.IsValid() {
		at := cs.from[c.block]
		if at == nil {
			at = &addressConnections{idle: list.New()}
			cs.from[c.block] = at
		}
		at.open++
	}
	cs.rest(c)
	cs.metrics.open.Set(float64(len(cs.open)))
	return victim, nil
}

// longestWaiting returns the connection that has waited for its client for longest: the first that
// is idle, or else the one of a block, or of all if block is the zero value, whose client does not
// read.
func (cs *connections) longestWaiting(
	idle *list.List, block netip.Prefix, searched *time.Time,
) (longest *conn) {
	if front := idle.Front(); front != nil {
		return front.Value.(*conn)
	}
	now := time.Now()
	if now.Sub(*searched) < stalledPause {
		return nil
	}
	earliest := now.Add(-writeStalled).UnixNano()
	for c := range cs.open {
		since := c.writing.Load()
		if since != 0 && since <= earliest && (!block.IsValid() || c.block == block) {
			longest, earliest = c, since
		}
	}
	if longest == nil {
		*searched = now
	}
	return longest
}

// rest makes c the connection that has been idle for shortest.
func (cs *connections) rest(c *conn) {
	if c.idle == nil {
		c.idle = cs.idle.PushBack(c)
		if at := cs.from[c.block]; at != nil {
			c.idleAtAddress = at.idle.PushBack(c)
		}
	}
}

// work makes c busy.
func (cs *connections) work(c *conn) {
	if c.idle != nil {
		cs.idle.Remove(c.idle)
		if at := cs.from[c.block]; at != nil {
			at.idle.Remove(c.idleAtAddress)
		}
		c.idle, c.idleAtAddress = nil, nil
	}
}

// changed notes the state of a connection.
func (cs *connections) changed(c *conn, state http.ConnState) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, here := cs.open[c]; !here {
		return
	}
	switch state {
	case http.StateIdle:
		cs.rest(c)
	case http.StateActive:
		cs.work(c)
	}
}

// awaitsClient notes whether a request that was begun waits for its body.
func (cs *connections) awaitsClient(c *conn, waits bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, here := cs.open[c]; !here {
		return
	}
	if waits {
		cs.rest(c)
	} else {
		cs.work(c)
	}
}

// remove forgets a connection. Removing again does nothing.
func (cs *connections) remove(c *conn) {
	if _, here := cs.open[c]; !here {
		return
	}
	cs.work(c)
	delete(cs.open, c)
	if at := cs.from[c.block]; at != nil {
		if at.open--; at.open == 0 {
			delete(cs.from, c.block)
		}
	}
	cs.metrics.open.Set(float64(len(cs.open)))
}

func (cs *connections) leave(c *conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.remove(c)
}

// evict closes the connection that has waited for its client for longest because open files have
// run out. It reports whether there was one.
func (cs *connections) evict() bool {
	cs.mu.Lock()
	victim := cs.longestWaiting(cs.idle, netip.Prefix{}, &cs.searched)
	if victim != nil {
		cs.remove(victim)
		cs.metrics.evicted.files.Inc()
	}
	cs.mu.Unlock()
	if victim == nil {
		return false
	}
	_ = victim.Conn.Close() // its client waits for nothing
	return true
}

// Listener makes the connections that l accepts answer like the API also when net/http refuses a
// request by itself, and bounds them by Config.Connections and Config.ConnectionsPerAddress. It is
// for connections without TLS.
func (a API) Listener(l net.Listener) net.Listener {
	return newListener(l, a.api, a.api.connections)
}

// operatorsConnections is how many connections the operators' port takes.
const operatorsConnections = 128

// OperatorsListener is Listener for the operators' port, whose connections have a bound of their
// own.
func (a API) OperatorsListener(l net.Listener) net.Listener {
	return newListener(
		l,
		a.api,
		newConnections(
			operatorsConnections, operatorsConnections, a.api.isTrustedProxy,
			newConnectionMetrics(nil),
		),
	)
}

type listener struct {
	net.Listener
	api         *api
	connections *connections
	leaving     chan struct{}
	goodbyes    *sync.WaitGroup
}

func newListener(l net.Listener, a *api, cs *connections) listener {
	return listener{l, a, cs, make(chan struct{}, maxLeaving), &sync.WaitGroup{}}
}

// Accept returns the next connection for which there is a place.
func (l listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			if !l.connections.evict() {
				time.Sleep(evictionPause) // the server would wait a second
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, api: l.api, connections: l.connections}
		victim, err := l.connections.admit(c)
		if err != nil {
			l.refuse(c, err)
			continue
		}
		if victim != nil {
			_ = victim.Conn.Close() // its client waits for nothing
		}
		_ = c.SetWriteBuffer(connectionBuffer) // a connection that is gone shows at the first read
		return c, nil
	}
}

// Close ends the listener, and waits for the connections that were refused last.
func (l listener) Close() error {
	err := l.Listener.Close()
	l.goodbyes.Wait()
	return err
}

// refuse answers a connection for which there is no place. Accept does not wait for it.
func (l listener) refuse(c *conn, why error) {
	select {
	case l.leaving <- struct{}{}:
	default:
		_ = c.Conn.Close() // there are too many to be polite
		return
	}
	l.goodbyes.Go(func() {
		defer func() { <-l.leaving }()
		defer c.Conn.Close()
		if c.SetDeadline(time.Now().Add(leaveTimeout)) != nil {
			return
		}
		if _, err := c.Conn.Write(l.api.refuseConnection(c.RemoteAddr().String(), why)); err == nil {
			c.linger()
		}
	})
}
