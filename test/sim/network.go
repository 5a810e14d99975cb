package sim

import (
	"context"
	"fmt"
	"math/rand"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// usualDelay and rareDelay bound the delay of a segment; one in rareEvery has the longer one.
	usualDelay = 2 * time.Millisecond
	rareDelay  = 40 * time.Millisecond
	rareEvery  = 100
	// synInterval is the pause before a connect without an answer is tried again.
	synInterval = time.Second
	// retransmission bounds how long after the end of a cut a segment is sent again.
	retransmission = time.Second
	// sendBuffer is the most bytes of a connection that are under way.
	sendBuffer = 4 << 20
)

// Network is TCP between hosts, in memory. Each write arrives after a delay drawn from the seed. No
// two segments arrive at the same nanosecond, so virtual time orders them all.
type Network struct {
	mu        sync.Mutex
	random    *rand.Rand
	listeners map[string]*listener
	pipes     []*pipe // those of open connections, in the order of their connects
	cuts      map[link]bool
	slow      map[link]time.Duration
	dead      map[string]bool // hosts whose process has ended
	stopped   map[string]bool // hosts whose process is stopped
	changed   *sync.Cond      // stopped has changed
	taken     map[int64]bool  // times of arrival
	lastPort  int
}

// link is a direction between two hosts.
type link struct{ from, to string }

// NewNetwork returns a network without faults.
func NewNetwork(seed int64) *Network {
	n := &Network{
		random: rand.New(rand.NewSource(seed)), listeners: map[string]*listener{},
		cuts: map[link]bool{}, slow: map[link]time.Duration{}, dead: map[string]bool{},
		stopped: map[string]bool{}, taken: map[int64]bool{}, lastPort: 32768,
	}
	n.changed = sync.NewCond(&n.mu)
	return n
}

// Listen listens on host:port.
func (n *Network) Listen(address string) (net.Listener, error) {
	host, port, err := parse(address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}
	}
	l := &listener{
		network: n, address: &net.TCPAddr{IP: net.ParseIP(host), Port: port},
		accepted: make(chan *conn, 1024), closed: make(chan struct{}),
	}
	n.listeners[address] = l
	return l, nil
}

// Dial connects from a host to an address. It waits while packets are lost, until ctx ends.
func (n *Network) Dial(ctx context.Context, from, address string) (net.Conn, error) {
	to, port, err := parse(address)
	if err != nil {
		return nil, err
	}
	there, back := link{from, to}, link{to, from}
	for {
		n.mu.Lock()
		trip := n.delay(there) + n.delay(back)
		n.mu.Unlock()
		if err := sleep(ctx, trip); err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
		n.mu.Lock()
		n.awaitRunning(from)
		if n.dead[from] {
			n.mu.Unlock()
			return nil, net.ErrClosed
		}
		if !n.cuts[there] && !n.cuts[back] {
			defer n.mu.Unlock()
			return n.connect(from, to, address, port)
		}
		n.mu.Unlock()
		if err := sleep(ctx, synInterval); err != nil {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: err}
		}
	}
}

// connect returns the dialing end of a new connection. n.mu is held.
func (n *Network) connect(from, to, address string, port int) (net.Conn, error) {
	l := n.listeners[address]
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	n.lastPort++
	client := &net.TCPAddr{IP: net.ParseIP(from), Port: n.lastPort}
	server := &net.TCPAddr{IP: net.ParseIP(to), Port: port}
	there, back := newPipe(n, link{from, to}), newPipe(n, link{to, from})
	there.reverse, back.reverse = back, there
	select {
	case l.accepted <- &conn{in: there, out: back, local: server, remote: client}:
	default:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	n.pipes = append(n.pipes, there, back)
	return &conn{in: back, out: there, local: client, remote: server}, nil
}

// Dialer returns the dialer of nats.go's connections from a host.
func (n *Network) Dialer(host string) nats.CustomDialer { return dialer{n, host} }

type dialer struct {
	network *Network
	host    string
}

// Dial implements nats.CustomDialer, with the time limit of package streams.
func (d dialer) Dial(_, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return d.network.Dial(ctx, d.host, address)
}

// Cut loses everything that is sent from one host to another. TCP sends it again after Heal.
func (n *Network) Cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[link{from, to}] = true
}

// Restore ends the cut from one host to another.
func (n *Network) Restore(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.cuts, link{from, to})
	for _, p := range n.pipes {
		if p.link == (link{from, to}) {
			p.resend()
		}
	}
}

// Slow delays everything that is sent from one host to another.
func (n *Network) Slow(from, to string, by time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[link{from, to}] = by
}

// Heal ends all cuts and delays.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cuts)
	clear(n.slow)
	for _, p := range n.pipes {
		p.resend()
	}
}

// Stop stops a host's process, or lets it go on: what it reads and writes waits meanwhile, though
// its clocks and what needs no network go on.
func (n *Network) Stop(host string, stop bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped[host] = stop
	n.changed.Broadcast()
}

// AwaitRunning waits while a host's process is stopped.
func (n *Network) AwaitRunning(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.awaitRunning(host)
}

// awaitRunning waits while a host's process is stopped. n.mu is held.
func (n *Network) awaitRunning(host string) {
	for n.stopped[host] {
		n.changed.Wait()
	}
}

// connects reports whether a host has an open connection to a server.
func (n *Network) connects(host string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.pipes, func(p *pipe) bool { return p.link.to == host && p.err == nil })
}

// Reset resets all connections between two hosts.
func (n *Network) Reset(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range slices.Clone(n.pipes) {
		if p.link == (link{a, b}) || p.link == (link{b, a}) {
			p.end(reset("read"))
		}
	}
}

// Kill ends everything that a host has open, as the end of its process does: its peers' connections
// are reset. The host opens nothing until Boot.
func (n *Network) Kill(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dead[host], n.stopped[host] = true, false
	n.changed.Broadcast()
	for address, l := range n.listeners {
		if l.address.IP.String() == host {
			delete(n.listeners, address) // the server closes the listener when it has ended
		}
	}
	for _, p := range slices.Clone(n.pipes) {
		switch host {
		case p.link.to:
			p.end(net.ErrClosed)
		case p.link.from:
			p.send(segment{err: reset("read")})
			p.abandoned = true
		}
	}
}

// Boot lets a host open connections again.
func (n *Network) Boot(host string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.dead, host)
}

// arrival returns when something that is sent now arrives, after another time. n.mu is held.
func (n *Network) arrival(l link, after time.Time) time.Time {
	at := time.Now().Add(n.delay(l))
	if !at.After(after) {
		at = after.Add(1)
	}
	for n.taken[at.UnixNano()] {
		at = at.Add(1)
	}
	n.taken[at.UnixNano()] = true
	return at
}

// delay returns the delay of a segment. n.mu is held.
func (n *Network) delay(l link) time.Duration {
	most := usualDelay
	if n.random.Intn(rareEvery) == 0 {
		most = rareDelay
	}
	return 1 + time.Duration(n.random.Int63n(int64(most))) + n.slow[l]
}

// listener accepts the connections to an address.
type listener struct {
	network  *Network
	address  *net.TCPAddr
	accepted chan *conn
	closed   chan struct{}
	once     sync.Once
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.accepted:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: net.ErrClosed}
	}
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.network.listeners[l.address.String()] == l {
		delete(l.network.listeners, l.address.String())
	}
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.address }

// parse splits an address into its host and port.
func parse(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w", address, err)
	}
	return host, port, nil
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func reset(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Err: syscall.ECONNRESET}
}
