package broker

import (
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	// handshakeWait is how long a hub's handshake waits for the service. It is shorter than hubs
	// wait for a connection.
	handshakeWait = 5 * time.Second
	// handshakePoll is the pause between two checks whether the service is ready.
	handshakePoll = 20 * time.Millisecond
)

// errNotReady ends a handshake that has waited for handshakeWait. The hub receives a TLS alert and
// tries again.
var errNotReady = errors.New("the service is not ready for hubs")

// handshakes delays the TLS handshakes of hubs until the auth callout is answered. The server opens
// its MQTT listener as soon as it starts. Without the delay it would reject hubs that connect
// during the start, and some of them would take that for an invalid certificate and enroll again.
type handshakes struct {
	// ready reports whether the auth callout is answered.
	ready func() bool
	// pause returns how long a handshake of an address must wait; nil for none.
	pause func(netip.Addr) time.Duration
	done  chan struct{}
	polls sync.WaitGroup
	// hellos has the connections that have sent a ClientHello.
	hellos hellos

	mu sync.Mutex
	// opened is closed once the service is ready; nil while no handshake waits.
	opened chan struct{}
	closed bool
}

func newHandshakes(ready func() bool, pause func(netip.Addr) time.Duration) *handshakes {
	return &handshakes{ready: ready, pause: pause, done: make(chan struct{})}
}

// guard returns a TLS configuration whose handshakes wait until the service is ready, and for the
// pause of their address.
func (h *handshakes) guard(base *tls.Config) *tls.Config {
	guarded := base.Clone()
	guarded.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		keepAlive(hello.Conn)
		h.hellos.add(hello.Conn)
		err := h.wait()
		if err == nil {
			err = h.waitPause(hello.Conn)
		}
		if err != nil || base.GetConfigForClient == nil {
			return nil, err
		}
		return base.GetConfigForClient(hello)
	}
	return guarded
}

// keepAlive makes the operating system close a connection whose peer is gone, after a minute and a
// half. The server relies on the keep-alive of MQTT, which a hub may switch off. The time is that
// of the longest keep-alive that the hub protocol allows.
func keepAlive(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{ // fails only if the connection is closed
			Enable: true, Idle: time.Minute, Interval: 10 * time.Second, Count: 3,
		})
	}
}

// wait waits until the service is ready. It returns errNotReady after handshakeWait or close.
func (h *handshakes) wait() error {
	if h.ready() {
		return nil
	}
	opened := h.poll()
	if opened == nil {
		return errNotReady
	}
	timeout := time.NewTimer(handshakeWait)
	defer timeout.Stop()
	select {
	case <-opened:
		return nil
	case <-timeout.C:
	case <-h.done:
	}
	return errNotReady
}

// waitPause waits for the pause of a connection's address. It returns errNotReady after close.
func (h *handshakes) waitPause(conn net.Conn) error {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || h.pause == nil {
		return nil
	}
	pause := h.pause(tcp.AddrPort().Addr())
	if pause == 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-h.done:
		return errNotReady
	}
}

// poll returns a channel that is closed once the service is ready, or nil after close. One
// goroutine polls for all waiting handshakes.
func (h *handshakes) poll() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	if h.opened == nil {
		opened := make(chan struct{})
		h.opened = opened
		h.polls.Go(func() {
			ticker := time.NewTicker(handshakePoll)
			defer ticker.Stop()
			for !h.ready() {
				select {
				case <-ticker.C:
				case <-h.done:
					return
				}
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			h.opened = nil
			close(opened)
		})
	}
	return h.opened
}

// close makes all waiting handshakes fail and stops the polling.
func (h *handshakes) close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}
	h.mu.Unlock()
	h.polls.Wait()
}
