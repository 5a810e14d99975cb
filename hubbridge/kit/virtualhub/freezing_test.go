package virtualhub_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hubcloud/hubbridge/kit/hub"
)

// readings returns events of an outlet.
func readings(n int) []hub.Event {
	return slices.Repeat([]hub.Event{hub.Observed(1, "power", 0, 60.5)}, n)
}

// freezing opens connections. freeze makes the last one half-open: neither end is notified.
type freezing struct{ last atomic.Pointer[frozenConn] }

func (f *freezing) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c := &frozenConn{Conn: conn, closed: make(chan struct{})}
	f.last.Store(c)
	return c, nil
}

// freeze returns what closes the connection that it made half-open.
func (f *freezing) freeze() (thaw func()) {
	c := f.last.Load()
	c.frozen.Store(true)
	_ = c.SetReadDeadline(time.Unix(1, 0)) // ends a read that has begun
	return func() { _ = c.Conn.Close() }
}

// frozenConn is a connection on which, once it is frozen, writes are dropped and reads wait for
// Close, which the other end does not notice.
type frozenConn struct {
	net.Conn
	frozen atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *frozenConn) Read(p []byte) (int, error) {
	if !c.frozen.Load() {
		n, err := c.Conn.Read(p)
		if !c.frozen.Load() {
			return n, err
		}
	}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *frozenConn) Write(p []byte) (int, error) {
	if c.frozen.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *frozenConn) Close() error {
	if c.frozen.Load() {
		c.once.Do(func() { close(c.closed) })
		return nil
	}
	return c.Conn.Close()
}
