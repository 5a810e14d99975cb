package httpapi

import (
	"bytes"
	"container/list"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"hubcloud/domain"
)

// Some requests net/http refuses by itself, before there is anything to handle: what is no HTTP, a
// header that is too large or malformed, a Host that is none, a transfer coding, a version or an
// expectation that it does not know. It writes those answers to the connection while no handler is
// answering there, which is how the connection knows them, whatever their text or that of an answer
// is. It puts in their place what the API answers: its error body, request id and rate limit,
// counted on the client's address.

// conn is a connection whose refusals are the API's.
type conn struct {
	net.Conn
	api *api
	// connections has the connection, under block unless it is a proxy's, and in its lists while it
	// is idle.
	connections         *connections
	block               netip.Prefix
	idle, idleAtAddress *list.Element
	// answering reports that what is written belongs to a handler's answer: from when a handler is
	// called until its answer is out and the server waits for the next request. Over HTTP/2, where
	// net/http refuses in frames, it stays so.
	answering   atomic.Bool
	multiplexed atomic.Bool
	// writing is since when a write has been under way, in Unix nanoseconds; 0 while there is none.
	writing atomic.Int64
}

// called must be called before a handler is, and returned when the handler has returned. Meanwhile
// the connection counts as idle from when the request's body is first read to when it is read
// whole. What a handler leaves of it, the server reads.
func (c *conn) called(r *http.Request) (returned func()) {
	c.answering.Store(true)
	if r.ProtoMajor >= 2 {
		c.multiplexed.Store(true)
		return func() {}
	}
	if r.Body == nil || r.Body == http.NoBody {
		return func() {}
	}
	b := &clientBody{ReadCloser: r.Body, conn: c}
	r.Body = b
	return func() {
		if !b.whole {
			c.connections.awaitsClient(c, true)
		}
	}
}

// clientBody is the body of a request, for which its connection waits.
type clientBody struct {
	io.ReadCloser
	conn         *conn
	begun, whole bool
}

func (b *clientBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		b.conn.connections.awaitsClient(b.conn, true)
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.whole {
		b.whole = true
		b.conn.connections.awaitsClient(b.conn, false)
	}
	return n, err
}

// changed must be called with each state that the server has the connection in. The server is the
// only one to write, and waits for the next request once the last answer is out.
func (c *conn) changed(state http.ConnState) {
	c.connections.changed(c, state)
	if state == http.StateIdle && !c.multiplexed.Load() {
		c.answering.Store(false)
	}
}

// Close closes the connection.
func (c *conn) Close() error {
	c.connections.leave(c)
	return c.Conn.Close()
}

// Write writes p, or what the API answers in its place.
func (c *conn) Write(p []byte) (int, error) {
	c.writing.Store(time.Now().UnixNano())
	defer c.writing.Store(0)
	if c.answering.Load() {
		return c.Conn.Write(p)
	}
	status, reason, ok := ownRefusal(p)
	if !ok {
		return c.Conn.Write(p)
	}
	if _, err := c.Conn.Write(c.api.refuseUnread(c.RemoteAddr().String(), status, reason)); err != nil {
		return 0, err
	}
	c.linger()
	return len(p), nil
}

const (
	// lingerTime and lingerBytes bound what is still read of a request that was refused unread.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
)

// linger lets the client get to the answer: a connection that is closed while something on it is
// unread is reset, and with it goes what the client has not read yet (RFC 9112, section 9.6). The
// server closes it right after this, and reads nothing at the moment.
func (c *conn) linger() {
	if c.CloseWrite() == nil && c.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		// however it ends, the connection is closed next
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
}

// CloseWrite lets the server end an answer before the request has come to its end, so that the
// client still gets to read it.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// SetWriteBuffer sets the room that the kernel gives to what is not sent yet.
func (c *conn) SetWriteBuffer(bytes int) error {
	if sized, ok := c.Conn.(interface{ SetWriteBuffer(bytes int) error }); ok {
		return sized.SetWriteBuffer(bytes)
	}
	return errors.ErrUnsupported
}

// ownRefusal reads the status line of an answer of net/http's own, which comes in one write.
// Anything else, such as the frames of HTTP/2, is none.
func ownRefusal(p []byte) (status int, reason string, ok bool) {
	rest, ok := bytes.CutPrefix(p, []byte("HTTP/1."))
	if !ok || len(rest) < len("1 400") || rest[2] != '4' && rest[2] != '5' {
		return 0, "", false
	}
	line, _, _ := bytes.Cut(rest[2:], []byte("\r\n"))
	status, err := strconv.Atoi(string(line[:3]))
	if err != nil {
		return 0, "", false
	}
	if _, given, found := bytes.Cut(line, []byte(": ")); found {
		reason = string(given)
	}
	return status, reason, true
}

// refuseUnread makes the answer to a request that the server could not read, as it goes over the
// connection, and tells log and metrics of it. What the server calls its own shortcoming (501, 505)
// is the client's fault here: the contract has what is taken.
func (a *api) refuseUnread(remote string, status int, reason string) []byte {
	var err error
	switch status {
	case http.StatusRequestHeaderFieldsTooLarge:
		err = &refusal{
			status,
			domain.Errorf(
				domain.CodeInvalidRequest, "header: must have at most %d bytes, with the path",
				maxHeaderBytes,
			),
		}
	case http.StatusExpectationFailed:
		err = &refusal{
			status,
			domain.Errorf(domain.CodeInvalidRequest, "Expect: must be 100-continue"),
		}
	case http.StatusNotImplemented:
		err = invalid("Transfer-Encoding: must be chunked")
	case http.StatusHTTPVersionNotSupported:
		err = invalid("request: must be HTTP/1.1 or HTTP/1.0")
	default:
		if reason == "" {
			reason = "must be well-formed HTTP"
		}
		err = invalid("request: %s", reason)
	}
	return a.refuseConnection(remote, err)
}

// refuseConnection makes the answer to a connection of which no request is read, or nothing but
// that.
func (a *api) refuseConnection(remote string, err error) []byte {
	w := &rawAnswer{header: http.Header{"Connection": {"close"}}}
	x := a.begin(w, &http.Request{RemoteAddr: remote})
	x.route = a.unread
	if limited := x.spendOfAddress(); limited != nil {
		err = limited
	}
	x.refuse(err)
	x.report()
	return w.encode(x)
}

// rawAnswer is a http.ResponseWriter that keeps the answer.
type rawAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *rawAnswer) Header() http.Header         { return w.header }
func (w *rawAnswer) WriteHeader(status int)      { w.status = status }
func (w *rawAnswer) Write(p []byte) (int, error) { return w.body.Write(p) }

func (w *rawAnswer) encode(x *exchange) []byte {
	w.header["Date"] = []string{x.start.UTC().Format(http.TimeFormat)}
	var raw bytes.Buffer
	fmt.Fprintf(&raw, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status))
	_ = w.header.Write(&raw) // into memory
	raw.WriteString("\r\n")
	raw.Write(w.body.Bytes())
	return raw.Bytes()
}
