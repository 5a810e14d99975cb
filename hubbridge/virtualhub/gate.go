package virtualhub

import (
	"net"
	"sync"
	"time"
)

// gate is a connection that can be cut or made half-open: then it takes what is written and gives nothing to read, and the peer hears
// nothing, not even that it was closed.
type gate struct {
	net.Conn          // TLS
	raw      net.Conn // below it

	mu       sync.Mutex
	halfOpen bool
	closed   chan struct{}
	once     sync.Once
}

func newGate(conn, raw net.Conn) *gate {
	return &gate{Conn: conn, raw: raw, closed: make(chan struct{})}
}

// cut ends the connection as a broken cable does, seen from a peer that is told: without a word of TLS or MQTT.
func (g *gate) cut() { _ = g.raw.Close() }

// freeze makes the connection half-open. A read that is under way is called back.
func (g *gate) freeze() {
	g.mu.Lock()
	g.halfOpen = true
	g.mu.Unlock()
	_ = g.raw.SetReadDeadline(time.Unix(1, 0))
}

func (g *gate) frozen() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.halfOpen
}

func (g *gate) Read(p []byte) (int, error) {
	if !g.frozen() {
		n, err := g.Conn.Read(p)
		if !g.frozen() {
			return n, err
		}
	}
	<-g.closed
	return 0, net.ErrClosed
}

func (g *gate) Write(p []byte) (int, error) {
	if g.frozen() {
		return len(p), nil
	}
	return g.Conn.Write(p)
}

// Close closes the connection, unless it is half-open: then only this end is done with it, and release closes the rest.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	if g.frozen() {
		return nil
	}
	return g.Conn.Close()
}

// release closes what a half-open connection left.
func (g *gate) release() { _ = g.raw.Close() }
