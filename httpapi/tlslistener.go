package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// handshakeTimeout bounds the TLS handshake of a new connection.
	handshakeTimeout = 10 * time.Second
	// handshakesPerRequest and handshakeBurst are how many handshakes an address may make for each
	// request that Config.Rate and Config.Burst allow it: a building whose streams all reconnect has a
	// burst of 1,000, and a client that only connects takes a tenth of a processor.
	handshakesPerRequest, handshakeBurst = 4, 10
)

// The protocols that a client may choose in the TLS handshake.
const (
	protocolHTTP1 = "http/1.1"
	protocolHTTP2 = "h2"
)

// TLSListener is Listener for HTTPS. The bounds of connections apply from the moment a connection
// is accepted, before its handshake. Handshakes take at most ten seconds and run concurrently.
// config must have a certificate; it offers HTTP/2 and HTTP/1.1 unless config names others. A
// connection on which another protocol was chosen, such as for an ACME challenge, is closed
// after its handshake.
//
// Close ends the handshakes under way. The server must not use TLS itself.
func (a API) TLSListener(l net.Listener, config *tls.Config) net.Listener {
	config = config.Clone()
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{protocolHTTP2, protocolHTTP1}
	}
	t := &tlsListener{
		listener: newListener(l, a.api, a.api.connections), config: config,
		accepted: make(chan accepted),
	}
	t.tls = config.Clone()
	t.tls.NextProtos = []string{protocolHTTP1}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	t.work.Go(t.acceptAll)
	return t
}

// tlsListener accepts connections and performs their handshakes in goroutines, which Close waits
// for. A context in its fields ends them, since Accept has none.
type tlsListener struct {
	listener
	config   *tls.Config
	accepted chan accepted
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// accepted is a result of Accept.
type accepted struct {
	conn net.Conn
	err  error
}

// Accept returns the next connection whose handshake has succeeded: a *conn for HTTP/1.1, or a
// *tls.Conn for HTTP/2, by which the server recognizes it.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case a := <-l.accepted:
		return a.conn, a.err
	case <-l.ctx.Done():
		return nil, net.ErrClosed
	}
}

// Close closes the listener and waits until its goroutines have ended.
func (l *tlsListener) Close() error {
	err := l.listener.Close()
	l.cancel()
	l.work.Wait()
	return err
}

// acceptAll accepts connections until the listener is closed.
func (l *tlsListener) acceptAll() {
	for {
		accepted, err := l.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || !l.deliver(nil, err) {
				return
			}
			continue
		}
		l.work.Go(func() { l.handshake(accepted.(*conn)) })
	}
}

// deliver passes a result to Accept. It returns false if the listener was closed first.
func (l *tlsListener) deliver(conn net.Conn, err error) bool {
	select {
	case l.accepted <- accepted{conn, err}:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// handshake performs the handshake of a connection and delivers the connection.
func (l *tlsListener) handshake(c *conn) {
	ctx, cancel := context.WithTimeout(l.ctx, handshakeTimeout)
	defer cancel()
	if !l.waitForHandshake(ctx, c) {
		_ = c.Close()
		return
	}
	secured := tls.Server(ciphertext{c.raw, c}, l.config)
	if err := secured.HandshakeContext(ctx); err != nil {
		l.connections.metrics.handshakeErrors.Inc()
		l.answerPlain(c, err)
		_ = c.Close()
		return
	}
	var delivered net.Conn = c
	switch secured.ConnectionState().NegotiatedProtocol {
	case protocolHTTP2:
		c.multiplexed.Store(true)
		delivered = secured
	case protocolHTTP1, "":
		c.Conn = secured
	default:
		_ = secured.Close()
		return
	}
	if !l.deliver(delivered, nil) {
		_ = delivered.Close()
	}
}

// waitForHandshake waits until the address of a connection, which is no trusted proxy's, may make another
// handshake. It returns false if ctx ends first.
func (l *tlsListener) waitForHandshake(ctx context.Context, c *conn) bool {
	if !c.block.IsValid() {
		return true
	}
	wait := l.api.handshakeRates.Spend(c.block, 1, l.api.Now())
	if wait <= 0 {
		return true
	}
	select {
	case <-time.After(wait):
		return true
	case <-ctx.Done():
		return false
	}
}

// answerPlain answers a client that has sent a plain HTTP request instead of a handshake.
func (l *tlsListener) answerPlain(c *conn, err error) {
	plain, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || plain.Conn == nil || !beginsRequest(plain.RecordHeader) {
		return
	}
	if c.raw.SetDeadline(time.Now().Add(rejectTimeout)) != nil {
		return
	}
	answer := l.api.encodeRejection(
		c.RemoteAddr().String(), invalid("request: this port speaks HTTPS: use https://"),
	)
	if _, err := c.raw.Write(answer); err == nil {
		c.linger()
	}
}

// beginsRequest reports whether the first bytes of a connection may begin an HTTP request.
func beginsRequest(head [5]byte) bool {
	for _, b := range head {
		if (b < 'A' || b > 'Z') && b != ' ' && b != '/' {
			return false
		}
	}
	return true
}

// ciphertext is the connection below TLS. It keeps the state of c up to date.
type ciphertext struct {
	net.Conn
	c *conn
}

// Write writes encrypted bytes.
func (t ciphertext) Write(p []byte) (int, error) {
	t.c.writingSince.Store(time.Now().UnixNano())
	defer t.c.writingSince.Store(0)
	return t.Conn.Write(p)
}

// Close closes the connection.
func (t ciphertext) Close() error {
	t.c.connections.remove(t.c)
	return t.Conn.Close()
}

// connOf returns the connection that the listener admitted, which is below TLS for HTTP/2. It
// returns false for a connection of another listener.
func connOf(accepted net.Conn) (*conn, bool) {
	if secured, ok := accepted.(*tls.Conn); ok {
		below, ok := secured.NetConn().(ciphertext)
		return below.c, ok
	}
	c, ok := accepted.(*conn)
	return c, ok
}
