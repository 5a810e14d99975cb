package mail

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// conn is the connection that delivers one mail. The SMTP client leaves it open after some errors
// and does not watch its context while it talks: the caller of dial closes it.
type conn struct {
	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

// dial connects. With a config it encrypts from the first byte.
func (c *conn) dial(
	ctx context.Context, network, address string, config *tls.Config,
) (net.Conn, error) {
	var dialer net.Dialer
	dialed, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.conn = dialed
	closed := c.closed
	c.mu.Unlock()
	if closed {
		dialed.Close()
		return nil, net.ErrClosed
	}
	if config == nil {
		return dialed, nil
	}
	secured := tls.Client(dialed, config)
	return secured, secured.HandshakeContext(ctx)
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.conn != nil {
		c.conn.Close()
	}
}
