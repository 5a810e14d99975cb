package virtualhub

import (
	"context"
	"net"
	"sync"
	"time"
)

// faultyNetwork opens TCP connections that can be cut or made half-open. The zero faultyNetwork is
// ready for use.
type faultyNetwork struct {
	mu       sync.Mutex
	current  *faultyConn // the last that was opened; nil before
	halfOpen []*faultyConn
}

// dial opens a connection, which becomes the current one.
func (n *faultyNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = &faultyConn{Conn: conn, closed: make(chan struct{})}
	return n.current, nil
}

// cut closes the current connection without a TLS or MQTT goodbye.
func (n *faultyNetwork) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current != nil {
		_ = n.current.Conn.Close()
	}
}

// freeze makes the current connection half-open.
func (n *faultyNetwork) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current != nil && !n.current.frozen() {
		n.current.freeze()
		n.halfOpen = append(n.halfOpen, n.current)
	}
}

// release closes the half-open connections.
func (n *faultyNetwork) release() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, conn := range n.halfOpen {
		_ = conn.Conn.Close()
	}
	n.halfOpen = nil
}

// faultyConn is a TCP connection that can be cut or made half-open. It is safe for concurrent use.
type faultyConn struct {
	net.Conn

	mu        sync.Mutex
	halfOpen  bool
	closed    chan struct{}
	closeOnce sync.Once
}

// freeze makes the connection half-open, without notice to either end: writes succeed and are
// dropped, and reads block until Close. It also interrupts a read that has begun.
func (c *faultyConn) freeze() {
	c.mu.Lock()
	c.halfOpen = true
	c.mu.Unlock()
	_ = c.SetReadDeadline(time.Unix(1, 0))
}

func (c *faultyConn) frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halfOpen
}

// Read reads from the connection.
func (c *faultyConn) Read(p []byte) (int, error) {
	if !c.frozen() {
		n, err := c.Conn.Read(p)
		if !c.frozen() {
			return n, err
		}
	}
	<-c.closed
	return 0, net.ErrClosed
}

// Write writes to the connection.
func (c *faultyConn) Write(p []byte) (int, error) {
	if c.frozen() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Close closes the connection. The peer of a half-open connection must not notice: there Close only
// ends this side's reads, and release closes the TCP connection later.
func (c *faultyConn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	if c.frozen() {
		return nil
	}
	return c.Conn.Close()
}
