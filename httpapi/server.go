package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the server that NewServer makes.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// NewServer makes the server for handlers of this package. It bounds what a client can hold: the
// time of its header, of an answer that it does not read (requests that last longer set deadlines
// of their own) and of an idle connection, and the size of its header; bodies are bounded by the
// handlers. The address, and TLS, are the caller's to set.
//
// To stop, close Config.Draining and then call Shutdown: streams and waiting requests end by
// themselves.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	silent := &silentConns{conns: map[net.Conn]struct{}{}}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, ok := r.Context().Value(connKey{}).(*conn); ok {
				defer c.called(r)()
			}
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      managementTimeout + writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// `OPTIONS *` gets an answer with a request id like everything else.
		DisableGeneralOptionsHandler: true,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ConnState: func(changed net.Conn, state http.ConnState) {
			silent.changed(changed, state)
			if c, ok := changed.(*conn); ok {
				c.changed(state)
			}
		},
	}
	server.RegisterOnShutdown(silent.close)
	return server
}

// silentConns are the connections on which nothing has been sent yet: browsers open some ahead of
// need. Shutdown would wait five seconds for a request on them. What is closed here at its start
// fares like a connection that the listener has not accepted yet.
type silentConns struct {
	mu    sync.Mutex
	conns map[net.Conn]struct{}
	over  bool
}

func (s *silentConns) changed(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(s.conns, conn)
	case s.over:
		_ = conn.Close() // accepted in the moment of the shutdown
	default:
		s.conns[conn] = struct{}{}
	}
}

func (s *silentConns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for conn := range s.conns {
		_ = conn.Close() // its client has asked for nothing
	}
}

// connKey is under what a request's context has its connection.
type connKey struct{}

// boundSendBuffer gives the request's connection the room of a stream, if it is one of its own:
// over HTTP/2 several requests share one.
func boundSendBuffer(r *http.Request) {
	conn, ok := r.Context().Value(connKey{}).(interface{ SetWriteBuffer(bytes int) error })
	if ok && r.ProtoMajor == 1 {
		// a connection that is gone shows at the next write
		_ = conn.SetWriteBuffer(streamSendBuffer)
	}
}
