package httpapi

import (
	"container/list"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// conn is a connection of the API's listener. It reports to connections when it is idle, and
// replaces answers that net/http writes by itself (see unparsed.go).
type conn struct {
	// Conn is the connection to the server: raw, or TLS on top of raw for HTTP/1.1 over TLS.
	net.Conn
	// raw is the accepted connection. Other goroutines close this one: closing TLS may block.
	raw         net.Conn
	api         *api
	connections *connections
	// block is the client's address; the zero value for a trusted proxy's connection.
	block netip.Prefix
	// idle and idleAtAddress are the connection's elements in the lists of idle connections, nil
	// while it is busy. The mutex of connections guards them.
	idle, idleAtAddress *list.Element
	// inHandler reports that writes belong to a handler's answer: from the call of the handler
	// until the server waits for the next request. Over HTTP/2 it stays true: there net/http
	// rejects requests in frames.
	inHandler   atomic.Bool
	multiplexed atomic.Bool
	// writingSince is when the write under way began, in Unix nanoseconds; 0 if there is none.
	writingSince atomic.Int64
	// waits are what requests over HTTP/2 wait for.
	waits waits
}

// stalledSince returns since when the client has not read what it asked for, or over HTTP/2 not
// sent the rest of a request, in Unix nanoseconds; 0 if nothing waits for it.
func (c *conn) stalledSince() int64 {
	writing, waiting := c.writingSince.Load(), c.waits.longest()
	if writing == 0 || waiting == 0 {
		return max(writing, waiting)
	}
	return min(writing, waiting)
}

// serveMultiplexed calls a handler for a request over HTTP/2.
func (c *conn) serveMultiplexed(handler http.Handler, w http.ResponseWriter, r *http.Request) {
	c.inHandler.Store(true)
	c.multiplexed.Store(true)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = multiplexedBody{r.Body, c}
	}
	writer := &multiplexedWriter{ResponseWriter: w, conn: c, head: r.Method == http.MethodHead}
	defer writer.end()
	handler.ServeHTTP(writer, r)
	writer.finish()
}

// handlerStarted must be called before a handler, and the returned function after it, for a request
// over HTTP/1.1. In between, the connection counts as idle while it waits for the request's body.
// What the handler does not read of the body the server reads afterwards.
func (c *conn) handlerStarted(r *http.Request) (returned func()) {
	c.inHandler.Store(true)
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	b := &bodyReader{ReadCloser: r.Body, conn: c}
	r.Body = b
	return func() {
		if !b.complete {
			c.connections.setIdle(c, true)
		}
	}
}

// bodyReader marks its connection as idle from the first read of the body to the last.
type bodyReader struct {
	io.ReadCloser
	conn            *conn
	begun, complete bool
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.conn.connections.setIdle(b.conn, true)
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.complete {
		b.complete = true
		b.conn.connections.setIdle(b.conn, false)
	}
	return n, err
}

// stateChanged must be called with each state that the server reports for the connection.
func (c *conn) stateChanged(state http.ConnState) {
	c.connections.stateChanged(c, state)
	if state == http.StateIdle && !c.multiplexed.Load() {
		c.inHandler.Store(false)
	}
}

// Close closes the connection.
func (c *conn) Close() error {
	c.connections.remove(c)
	return c.Conn.Close()
}

// Write writes p, or the API's error in place of one that net/http wrote by itself.
func (c *conn) Write(p []byte) (int, error) {
	c.writingSince.Store(time.Now().UnixNano())
	defer c.writingSince.Store(0)
	if c.inHandler.Load() {
		return c.Conn.Write(p)
	}
	status, reason, ok := parseServerError(p)
	if !ok {
		return c.Conn.Write(p)
	}
	answer := c.api.encodeRejection(c.RemoteAddr().String(), unparsedError(status, reason))
	if _, err := c.Conn.Write(answer); err != nil {
		return 0, err
	}
	c.linger()
	return len(p), nil
}

const (
	// lingerTime and lingerBytes bound what is read of a rejected request.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// linger reads the rest of a rejected request before the connection is closed. Closing a connection
// with unread data resets it, and the client could lose the answer (RFC 9112, section 9.6). The
// server is not reading meanwhile.
func (c *conn) linger() {
	if c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes) // the connection is closed in any case
	}
}

// CloseWrite lets the server end an answer before the request is complete, so that the client can
// still read the answer.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetWriteBuffer sets the size of the kernel's send buffer.
func (c *conn) SetWriteBuffer(bytes int) error {
	if sized, ok := c.raw.(interface{ SetWriteBuffer(bytes int) error }); ok {
		return sized.SetWriteBuffer(bytes)
	}
	return errors.ErrUnsupported
}
