package brokerconn

import (
	"errors"
	"net"
	"sync"
	"time"
)

// errCut is the error of reads and writes after Cut. It differs from net.ErrClosed because the MQTT
// client takes net.ErrClosed for its own disconnect and does not report it.
var errCut = errors.New("the connection was cut")

// Conn is a TLS connection that can be cut or made half-open. It is safe for concurrent use.
type Conn struct {
	net.Conn          // TLS
	raw      net.Conn // the TCP connection below it

	mu        sync.Mutex
	halfOpen  bool
	severed   bool
	closed    chan struct{}
	closeOnce sync.Once
}

// Cut closes the TCP connection without a TLS or MQTT goodbye.
func (c *Conn) Cut() {
	c.mu.Lock()
	c.severed = true
	c.mu.Unlock()
	_ = c.raw.Close()
}

// Freeze makes the connection half-open, without notice to either end: writes succeed and are
// dropped, and reads block until Close. It also interrupts a read that has begun.
func (c *Conn) Freeze() {
	c.mu.Lock()
	c.halfOpen = true
	c.mu.Unlock()
	_ = c.raw.SetReadDeadline(time.Unix(1, 0))
}

// Frozen reports whether the connection is half-open.
func (c *Conn) Frozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.halfOpen
}

// Read reads from the TLS connection.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.Frozen() {
		n, err := c.Conn.Read(p)
		if !c.Frozen() {
			return n, c.cutError(err)
		}
	}
	<-c.closed
	return 0, net.ErrClosed
}

// Write writes to the TLS connection.
func (c *Conn) Write(p []byte) (int, error) {
	if c.Frozen() {
		return len(p), nil
	}
	n, err := c.Conn.Write(p)
	return n, c.cutError(err)
}

// cutError returns errCut in place of err after a Cut.
func (c *Conn) cutError(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.severed {
		return errCut
	}
	return err
}

// Close closes the connection. The peer of a half-open connection must not notice: there Close only
// ends this side's reads, and Release closes the TCP connection later.
func (c *Conn) Close() error {
	c.closeOnce.Do(func() { close(c.closed) })
	if c.Frozen() {
		return nil
	}
	return c.Conn.Close()
}

// Release closes the TCP connection of a half-open connection.
func (c *Conn) Release() { _ = c.raw.Close() }
