package httpapi

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"hubcloud/httpapi/response"
)

// Limits of the server that NewServer makes.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	// maxConcurrentStreams is how many requests may be under way on one connection with HTTP/2.
	maxConcurrentStreams = 250
	// writeTimeout is how long a client may take to accept one write.
	writeTimeout = response.WriteTimeout
)

// NewServer returns a server for handlers of this package. It bounds the size of a client's header,
// and the time for the header, for an unread answer (long-lived requests set deadlines of their
// own) and for an idle connection. Handlers bound the body. The listener has the address and TLS
// (see TLSListener).
//
// To stop the server, close Config.Draining and then call Shutdown: streams and waiting requests
// end by themselves.
func NewServer(handler http.Handler, logger *slog.Logger) *http.Server {
	silent := &silentConns{conns: map[net.Conn]struct{}{}}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, ok := r.Context().Value(connKey{}).(*conn)
			switch {
			case !ok || c == nil:
				handler.ServeHTTP(w, r)
			case r.ProtoMajor >= 2:
				c.serveMultiplexed(handler, w, r)
			default:
				defer c.handlerStarted(r)()
				handler.ServeHTTP(w, r)
			}
		}),
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      managementTimeout + writeTimeout,
		IdleTimeout:       idleTimeout,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxConcurrentStreams,
			WriteByteTimeout:     writeTimeout,
		},
		MaxHeaderBytes: maxHeaderBytes,
		ErrorLog:       slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
		// The API answers `OPTIONS *` itself, with a request id.
		DisableGeneralOptionsHandler: true,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			c, _ := connOf(conn)
			return context.WithValue(ctx, connKey{}, c)
		},
		ConnState: func(changed net.Conn, state http.ConnState) {
			silent.stateChanged(changed, state)
			if c, ok := connOf(changed); ok {
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
