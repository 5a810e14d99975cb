package broker

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// logEvery and logBurst limit the rate of the NATS server's log lines, since strangers can
	// cause some of them.
	logEvery = time.Second
	logBurst = 50
)

// serverLogger passes the NATS server's log lines to the service's log. The server's notices, and
// lines about a single hub's connection, are logged at debug level: other parts of the service log
// what matters about connections.
type serverLogger struct {
	logger *slog.Logger
	// fatal receives the first fatal error, which makes Start fail. The process goes on.
	fatal chan string
	// faults looks for errors of the store.
	faults *faults
	// note looks for violations of hubs.
	note func(text string)

	mu         sync.Mutex
	limit      *rate.Limiter
	suppressed int
}

func newServerLogger(
	logger *slog.Logger, faults *faults, note func(text string),
) *serverLogger {
	return &serverLogger{
		note:   note,
		logger: logger.With("component", "nats-server"),
		faults: faults,
		fatal:  make(chan string, 1),
		limit:  rate.NewLimiter(rate.Every(logEvery), logBurst),
	}
}

// Noticef logs a notice at debug level.
func (l *serverLogger) Noticef(format string, v ...any) {
	l.logger.Debug(fmt.Sprintf(format, v...))
}

// Warnf logs a warning.
func (l *serverLogger) Warnf(format string, v ...any) { l.line(slog.LevelWarn, format, v) }

// Errorf logs an error.
func (l *serverLogger) Errorf(format string, v ...any) { l.line(slog.LevelError, format, v) }

// Fatalf logs an error and makes Start fail with it.
func (l *serverLogger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default: // the first fatal error is the cause of the others
	}
	l.line(slog.LevelError, format, v)
}

// Debugf does nothing: the server does not call it.
func (l *serverLogger) Debugf(string, ...any) {}

// Tracef does nothing: the server does not call it.
func (l *serverLogger) Tracef(string, ...any) {}

func (l *serverLogger) line(level slog.Level, format string, v []any) {
	l.faults.inspect(format, v)
	text := fmt.Sprintf(format, v...)
	l.note(text)
	if detail(text) {
		l.logger.Debug(text)
		return
	}
	l.mu.Lock()
	if !l.limit.Allow() {
		l.suppressed++
		l.mu.Unlock()
		return
	}
	suppressed := l.suppressed
	l.suppressed = 0
	l.mu.Unlock()
	if suppressed > 0 {
		l.logger.Log(context.Background(), level, text, "lines_suppressed", suppressed)
		return
	}
	l.logger.Log(context.Background(), level, text)
}

// detail reports whether a line is of no use to operators.
func detail(text string) bool {
	switch {
	case strings.Contains(text, " - mid:"):
		// Lines about one MQTT connection start with its address and number, such as
		// `[::1]:4711 - mid:12`.
		return true
	case strings.HasPrefix(text, "Auth callout service returned an error"):
		// The callout itself logs and counts every rejection.
		return true
	case strings.HasPrefix(text, "Filestore [") && strings.Contains(text, " outdated"):
		// After a crash the server rebuilds the outdated index of every stream.
		return true
	case strings.Contains(text, "Missing consumer metafile"):
		// A crash interrupted the creation of a consumer. All consumers here are short-lived, but
		// the folder stays, and the server reports it at every start.
		return true
	}
	return false
}
