package httpapi

import (
	"log/slog"
	"net/http"
	"time"
)

// Limits of the server that NewServer makes.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// NewServer makes the server for handlers of this package. It bounds what a client can hold: the time of its header, of an answer
// that it does not read (requests that last longer set deadlines of their own) and of an idle connection, and the size of its
// header; bodies are bounded by the handlers. The address, and TLS, are the caller's to set.
//
// To stop, close Config.Draining and then call Shutdown: streams and waiting requests end by themselves.
func NewServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readHeaderTimeout,
		WriteTimeout:      managementTimeout + writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		// `OPTIONS *` gets an answer with a request id like everything else.
		DisableGeneralOptionsHandler: true,
	}
}
