package mail

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// line is the connection of one mail. Whoever made it closes it, whatever the SMTP client comes to.
type line struct {
	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

// dial connects, and encrypts from the first byte when config is not nil.
func (l *line) dial(
	ctx context.Context, network, address string, config *tls.Config,
) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.conn = conn
	closed := l.closed
	l.mu.Unlock()
	if closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	if config == nil {
		return conn, nil
	}
	secured := tls.Client(conn, config)
	return secured, secured.HandshakeContext(ctx)
}

func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		l.conn.Close()
	}
}
