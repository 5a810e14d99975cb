package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"hubcloud/httpapi/sse"
)

// Limits of the server that NewServer makes.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	// writeTimeout is how long a client may take to accept one write.
	writeTimeout = sse.WriteTimeout
)

// NewServer returns a server for handlers of this package. It bounds the size of a client's header,
// and the time for the header, for an unread answer (long-lived requests set deadlines of their
// own) and for an idle connection. Handlers bound the body. The caller sets address and TLS.
//
// To stop the server, close Config.Draining and then call Shutdown: streams and waiting requests
// end by themselves.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	silent := &silentConns{conns: map[net.Conn]struct{}{}}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if c, ok := r.Context().Value(connKey{}).(*conn); ok {
				defer c.handlerStarted(r)()
			}
			handler.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      managementTimeout + writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		// The API answers `OPTIONS *` itself, with a request id.
		DisableGeneralOptionsHandler: true,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, conn)
		},
		ConnState: func(changed net.Conn, state http.ConnState) {
			silent.stateChanged(changed, state)
			if c, ok := changed.(*conn); ok {
				c.stateChanged(state)
			}
		},
	}
	server.RegisterOnShutdown(silent.close)
	return server
}

// silentConns are the connections on which the client has not sent anything yet; browsers open some
// in advance. Shutdown would wait five seconds for a request on them, so they are closed when it
// begins. For the client that is the same as a connection that was never accepted.
type silentConns struct {
	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func (s *silentConns) stateChanged(conn net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(s.conns, conn)
	case s.closed:
		_ = conn.Close() // accepted while Shutdown began
	default:
		s.conns[conn] = struct{}{}
	}
}

func (s *silentConns) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for conn := range s.conns {
		_ = conn.Close()
	}
}

// connKey is the key of the connection in a request's context.
type connKey struct{}
