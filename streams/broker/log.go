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
	// logEvery and logBurst bound the lines of the NATS server's: some of them follow from what
	// strangers do.
	logEvery = time.Second
	logBurst = 50
)

// logger brings the NATS server's lines into the service's log. Its notices are details here, and
// so is what it says of a single hub's connection: that is somebody else's doing, and the service's
// own parts tell what matters of it.
type logger struct {
	log *slog.Logger
	// fatal gets the first line with which the server gives up. It does not end the process: Start
	// does it in its own way.
	fatal chan string
	// faults gets what the server says of its store.
	faults *faults

	mu         sync.Mutex
	limit      *rate.Limiter
	suppressed int
}

func newLogger(log *slog.Logger, faults *faults) *logger {
	return &logger{
		log:    log.With("component", "nats-server"),
		faults: faults,
		fatal:  make(chan string, 1),
		limit:  rate.NewLimiter(rate.Every(logEvery), logBurst),
	}
}

// Noticef logs a notice as a detail.
func (l *logger) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }

// Warnf logs a warning.
func (l *logger) Warnf(format string, v ...any) { l.line(slog.LevelWarn, format, v) }

// Errorf logs an error.
func (l *logger) Errorf(format string, v ...any) { l.line(slog.LevelError, format, v) }

// Fatalf logs an error and hands it to Start.
func (l *logger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Sprintf(format, v...):
	default: // there is one already, and the first is the cause
	}
	l.line(slog.LevelError, format, v)
}

// Debugf and Tracef are never called: the server runs without both.
func (l *logger) Debugf(string, ...any) {}

// Tracef does nothing, as Debugf.
func (l *logger) Tracef(string, ...any) {}

func (l *logger) line(level slog.Level, format string, v []any) {
	l.faults.line(format, v)
	text := fmt.Sprintf(format, v...)
	if detail(text) {
		l.log.Debug(text)
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
		l.log.Log(context.Background(), level, text, "lines_suppressed", suppressed)
		return
	}
	l.log.Log(context.Background(), level, text)
}

// detail says whether a line is of no use to an operator.
func detail(text string) bool {
	switch {
	case strings.Contains(text, " - mid:"):
		// About one MQTT connection: the server begins those with address and number, such as
		// `[::1]:4711 - mid:12`.
		return true
	case strings.HasPrefix(text, "Auth callout service returned an error"):
		// Every refusal is logged and counted by whoever answers the callout.
		return true
	case strings.HasPrefix(text, "Filestore [") && strings.Contains(text, " outdated"):
		// After a crash a stream's index is behind its messages, and is made from them again: for
		// every stream a line.
		return true
	case strings.Contains(text, "Missing consumer metafile"):
		// A crash in the midst of making one. Consumers are what watches or reads for a moment and
		// is made anew; the folder stays, and is told of at every start.
		return true
	}
	return false
}
