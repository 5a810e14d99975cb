package httpapi

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

const (
	// connectionSendBuffer is the size of the kernel's send buffer of a connection. The kernel's
	// own choice can grow to megabytes for a client that does not read.
	connectionSendBuffer = 128 << 10
	// maxRejecting is how many rejected connections get an answer at once; any more are closed
	// without one.
	maxRejecting = 64
	// rejectTimeout bounds the answer to a rejected connection.
	rejectTimeout = time.Second
	// evictionPause is how long Accept waits when the process has no file descriptors left and no
	// idle connection can be closed.
	evictionPause = 50 * time.Millisecond

	// operatorConnections is how many connections the operators' port accepts.
	operatorConnections = 128
)

// Listener returns a listener that bounds l's connections by Config.Connections and
// Config.ConnectionsPerAddress, and on whose connections the API also answers requests that
// net/http rejects by itself. l must not use TLS; see TLSListener.
func (a API) Listener(l net.Listener) net.Listener {
	return newListener(l, a.api, a.api.connections)
}

// OperatorsListener is Listener for the operators' port, whose connections have a bound of their
// own.
func (a API) OperatorsListener(l net.Listener) net.Listener {
	return newListener(l, a.api, newConnections(
		operatorConnections, operatorConnections, a.api.isTrustedProxy, newConnectionMetrics(nil),
	))
}

type listener struct {
	net.Listener
	api         *api
	connections *connections
	// slots bounds the rejections under way.
	slots      chan struct{}
	rejections *sync.WaitGroup
	// tls is what rejected connections speak: HTTP/1.1 over TLS, or nil for no TLS.
	tls *tls.Config
}

func newListener(l net.Listener, a *api, cs *connections) listener {
	return listener{
		Listener: l, api: a, connections: cs,
		slots: make(chan struct{}, maxRejecting), rejections: &sync.WaitGroup{},
	}
}

// Accept returns the next connection within the bounds.
func (l listener) Accept() (net.Conn, error) {
	for {
		accepted, err := l.Listener.Accept()
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			if !l.connections.evict() {
				time.Sleep(evictionPause) // the server would wait a second
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: accepted, raw: accepted, api: l.api, connections: l.connections}
		victim, err := l.connections.admit(c)
		if err != nil {
			l.reject(c, err)
			continue
		}
		if victim != nil {
			_ = victim.raw.Close()
		}
		_ = c.SetWriteBuffer(connectionSendBuffer) // a closed connection fails at the first read
		return c, nil
	}
}

// Close closes the listener and waits until rejected connections have their answers.
func (l listener) Close() error {
	err := l.Listener.Close()
	l.rejections.Wait()
	return err
}

// reject answers a connection with err and closes it, without making Accept wait.
func (l listener) reject(c *conn, err error) {
	select {
	case l.slots <- struct{}{}:
	default:
		_ = c.Conn.Close()
		return
	}
	l.rejections.Go(func() {
		defer func() { <-l.slots }()
		defer c.Conn.Close()
		if c.SetDeadline(time.Now().Add(rejectTimeout)) != nil {
			return
		}
		if l.tls != nil {
			c.Conn = tls.Server(c.raw, l.tls) // the first write performs the handshake
		}
		if _, err := c.Conn.Write(l.api.encodeRejection(c.RemoteAddr().String(), err)); err == nil {
			c.linger()
		}
	})
}
