package httpapi

import (
	"container/list"
	"io"
	"net/http"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/shares"
)

// unreadResponses bounds the responses over HTTP/2 that wait for their clients, some 20 KB each. A
// client decides for each request how much it reads, and may have 250 on a connection.
var unreadResponses = shares.Limits{Total: 8192, PerID: 1024}

func newUnreadPool(registry *shares.Registry) *shares.Pool {
	return shares.NewPool(registry, shares.PoolConfig{
		Name: "unread_responses", What: "responses are unread", Of: "address",
		Limits: unreadResponses,
	})
}

// waits are the reads and writes of a connection's requests over HTTP/2 that wait for the client,
// since net/http keeps them from the connection itself: a client that reads nothing of a response
// stops its request, not the connection.
type waits struct {
	mu    sync.Mutex
	began list.List // of time.Time, in order
}

// begin must be called before a read or write, and the returned function after it.
func (w *waits) begin() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.began.PushBack(time.Now())
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.began.Remove(e)
	}
}

// longest returns when the read or write began that has waited longest, in Unix nanoseconds; 0 if
// none waits.
func (w *waits) longest() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if front := w.began.Front(); front != nil {
		return front.Value.(time.Time).UnixNano()
	}
	return 0
}

// multiplexedBody is the body of a request over HTTP/2.
type multiplexedBody struct {
	io.ReadCloser
	conn *conn
}

func (b multiplexedBody) Read(p []byte) (int, error) {
	defer b.conn.waits.begin()()
	return b.ReadCloser.Read(p)
}

// multiplexedWriter writes a response over HTTP/2.
type multiplexedWriter struct {
	http.ResponseWriter
	conn *conn
	head bool
	// release returns the response's share of what is unread; nil while nothing is.
	release func()
}

var errUnreadResponses = domain.Unavailable("too many responses are unread")

// Write writes a part of the response. Beyond the share of the client's address it resets the
// request.
func (w *multiplexedWriter) Write(p []byte) (int, error) {
	if w.release == nil && w.conn.block.IsValid() {
		release, err := w.conn.api.unread.Take(shares.Spender{ID: w.conn.block.String()}, 1)
		if err != nil {
			_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now())
			return 0, errUnreadResponses
		}
		w.release = release
	}
	defer w.conn.waits.begin()()
	return w.ResponseWriter.Write(p)
}

// FlushError sends what was written.
func (w *multiplexedWriter) FlushError() error {
	defer w.conn.waits.begin()()
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if err == nil {
		w.end()
	}
	return err
}

// Unwrap returns the writer below, for http.ResponseController.
func (w *multiplexedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// finish sends the rest of the response after the handler, instead of net/http, which would let the
// client take as long as for the whole response.
func (w *multiplexedWriter) finish() {
	if w.release == nil || w.head {
		return
	}
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	_ = w.FlushError() // otherwise the request was reset
}

// end counts the response as read.
func (w *multiplexedWriter) end() {
	if w.release != nil {
		w.release()
		w.release = nil
	}
}
