package virtualhub

import (
	"errors"
	"net"
	"sync"
	"time"
)

// errCut is what a connection that was cut gives. It is not net.ErrClosed: the MQTT client takes
// that for its own doing, and says nothing.
var errCut = errors.New("the connection was cut")

// gate is a connection that can be cut or made half-open: then it takes what is written and gives
// nothing to read, and the peer hears nothing, not even that it was closed.
type gate struct {
	net.Conn          // TLS
	raw      net.Conn // below it

	mu       sync.Mutex
	halfOpen bool
	severed  bool
	closed   chan struct{}
	once     sync.Once
}

func newGate(conn, raw net.Conn) *gate {
	return &gate{Conn: conn, raw: raw, closed: make(chan struct{})}
}

// cut ends the connection as a broken cable does, seen from a peer that is told: without a word of
// TLS or MQTT.
func (g *gate) cut() {
	g.mu.Lock()
	g.severed = true
	g.mu.Unlock()
	_ = g.raw.Close()
}

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

// why gives the error of a read or write its name.
func (g *gate) why(err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil && g.severed {
		return errCut
	}
	return err
}

func (g *gate) Read(p []byte) (int, error) {
	if !g.frozen() {
		n, err := g.Conn.Read(p)
		if !g.frozen() {
			return n, g.why(err)
		}
	}
	<-g.closed
	return 0, net.ErrClosed
}

func (g *gate) Write(p []byte) (int, error) {
	if g.frozen() {
		return len(p), nil
	}
	n, err := g.Conn.Write(p)
	return n, g.why(err)
}

// Close closes the connection, unless it is half-open: then only this end is done with it, and
// release closes the rest.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	if g.frozen() {
		return nil
	}
	return g.Conn.Close()
}

// release closes what a half-open connection left.
func (g *gate) release() { _ = g.raw.Close() }
