package broker

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// gatePatience is how long a hub's handshake waits for the service to be ready. It stays below
	// what hubs wait for a connection.
	gatePatience = 5 * time.Second
	gatePoll     = 20 * time.Millisecond
)

// errNotReady ends a handshake that has waited long enough. The hub sees a TLS alert and tries
// again.
var errNotReady = errors.New("the service is not ready for hubs")

// gate holds back hubs' handshakes until the auth callout is answered. The server opens its MQTT
// listener by itself when it starts; without the gate every hub that comes in the first moments of
// a service would be refused, and some would take that for the end of their certificate and ask for
// a new one.
type gate struct {
	// ready says whether somebody answers the auth callout.
	ready func() bool
	done  chan struct{}
	polls sync.WaitGroup
	// hellos has the connections of which a ClientHello has come.
	hellos hellos

	mu sync.Mutex
	// opened is closed by the poll when it finds the service ready; nil while no poll runs.
	opened chan struct{}
	closed bool
}

func newGate(ready func() bool) *gate {
	return &gate{ready: ready, done: make(chan struct{})}
}

// guard gives a TLS configuration whose handshakes pass the gate first.
func (g *gate) guard(base *tls.Config) *tls.Config {
	guarded := base.Clone()
	guarded.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		keepAlive(hello.Conn)
		g.hellos.add(hello.Conn)
		return nil, g.wait()
	}
	return guarded
}

// keepAlive lets the system end a connection whose other side is gone. The server leaves that to
// the keep-alive of MQTT, and so keeps a hub that asks for none connected for ever. Here it takes a
// minute and a half, as with the longest keep-alive that the hub link allows.
func keepAlive(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{ // fails only on a connection that has ended
			Enable: true, Idle: time.Minute, Interval: 10 * time.Second, Count: 3,
		})
	}
}

// wait returns nil as soon as the service is ready, and errNotReady after gatePatience or close.
func (g *gate) wait() error {
	if g.ready() {
		return nil
	}
	opened := g.poll()
	if opened == nil {
		return errNotReady
	}
	patience := time.NewTimer(gatePatience)
	defer patience.Stop()
	select {
	case <-opened:
		return nil
	case <-patience.C:
	case <-g.done:
	}
	return errNotReady
}

// poll gives a channel that is closed once the service is ready. However many hubs wait, one
// goroutine looks.
func (g *gate) poll() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	if g.opened == nil {
		opened := make(chan struct{})
		g.opened = opened
		g.polls.Go(func() {
			ticker := time.NewTicker(gatePoll)
			defer ticker.Stop()
			for !g.ready() {
				select {
				case <-ticker.C:
				case <-g.done:
					return
				}
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			g.opened = nil
			close(opened)
		})
	}
	return g.opened
}

// close ends every wait and the poll.
func (g *gate) close() {
	g.mu.Lock()
	if !g.closed {
		g.closed = true
		close(g.done)
	}
	g.mu.Unlock()
	g.polls.Wait()
}
