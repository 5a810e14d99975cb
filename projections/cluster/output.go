package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// output logs the server's lines. It keeps the last lines for the error of a failed start.
type output struct {
	logger *slog.Logger

	mu     sync.Mutex
	rest   []byte   // an unfinished line
	recent []string // the last lines, oldest first
	// lockFound means that the server found another server's lock or shared memory.
	lockFound bool
}

const (
	recentLines = 8
	maxLine     = 8 << 10
)

func newOutput(logger *slog.Logger) *output { return &output{logger: logger} }

// Write implements io.Writer for the server's output. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rest = append(o.rest, p...)
	for {
		line, rest, whole := bytes.Cut(o.rest, []byte("\n"))
		if !whole && len(o.rest) < maxLine {
			return len(p), nil
		}
		o.rest = rest
		o.handleLine(string(line))
	}
}

// linePattern is `log_line_prefix=%e ` and the severity.
var linePattern = regexp.MustCompile(`^([0-9A-Z]{5}) ([A-Z]+):  (.*)$`)

func (o *output) handleLine(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	if o.recent = append(o.recent, line); len(o.recent) > recentLines {
		o.recent = o.recent[1:]
	}
	level, state, text := slog.LevelDebug, "", line
	if found := linePattern.FindStringSubmatch(line); found != nil {
		state, text = found[1], found[3]
		level = levelOf(found[2], state)
		// lock_file_exists, also for shared memory that is still in use
		o.lockFound = o.lockFound || state == "F0001"
	}
	o.logger.Log(context.Background(), level, "postgres: "+text, "sqlstate", state)
}

// levelOf returns the log level of a line. Connections that end or are rejected while the server
// starts or stops (class 57P) are normal, so their lines are debug messages.
func levelOf(severity, state string) slog.Level {
	switch {
	case strings.HasPrefix(state, "57P"):
		return slog.LevelDebug
	case severity == "WARNING":
		return slog.LevelWarn
	case severity == "ERROR" || severity == "FATAL" || severity == "PANIC":
		return slog.LevelError
	}
	return slog.LevelDebug
}

// last returns the last lines.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.recent, "; ")
}

// foundLock reports whether the server found another server's lock or shared memory.
func (o *output) foundLock() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lockFound
}
