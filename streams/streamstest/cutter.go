package streamstest

import (
	"bytes"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// Cutter is a broker that loses answers: once armed, it breaks the connection that next sends a
// text, after the broker has got the text and before its answer is read.
type Cutter struct {
	*Broker
	text  string
	armed atomic.Bool
	// OnCut, if not nil, is called when a connection is cut.
	OnCut func()
}

// NewCutter starts a broker that cuts connections which send text.
func NewCutter(t testing.TB, text string) *Cutter { return &Cutter{Broker: New(t), text: text} }

// Connect connects to the broker through the cutter.
func (c *Cutter) Connect(t testing.TB) *streams.Conns {
	t.Helper()
	return c.Broker.Connect(t, nats.InProcessServer(c))
}

// Arm makes the cutter break the connection that next sends the text.
func (c *Cutter) Arm() { c.armed.Store(true) }

// Armed reports whether no connection was cut since Arm.
func (c *Cutter) Armed() bool { return c.armed.Load() }

// InProcessConn returns a connection to the broker.
func (c *Cutter) InProcessConn() (net.Conn, error) {
	conn, err := c.Broker.InProcessConn()
	return &cutConn{Conn: conn, cutter: c}, err
}

type cutConn struct {
	net.Conn
	cutter *Cutter
	deaf   atomic.Bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.cutter.text)) && c.cutter.armed.CompareAndSwap(true, false) {
		c.deaf.Store(true)
		if c.cutter.OnCut != nil {
			c.cutter.OnCut()
		}
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.deaf.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}
