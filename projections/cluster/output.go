package cluster

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"sync"
)

// output takes what the server prints, line by line: warnings and errors go to the log, and the
// last lines are kept for the error of a start that failed.
type output struct {
	log *slog.Logger

	mu     sync.Mutex
	rest   []byte   // an unfinished line
	recent []string // the last lines, oldest first
	lock   bool
}

const (
	recentLines = 8
	maxLine     = 8 << 10
)

func newOutput(log *slog.Logger) *output { return &output{log: log} }

// Write takes what the server printed. It never fails: the server must not wait for its log.
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
		o.take(string(line))
	}
}

// linePattern is `log_line_prefix=%e ` and the severity.
var linePattern = regexp.MustCompile(`^([0-9A-Z]{5}) ([A-Z]+):  (.*)$`)

func (o *output) take(line string) {
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
		// lock_file_exists: also said of shared memory that is still in use
		o.lock = o.lock || state == "F0001"
	}
	o.log.Log(context.Background(), level, "postgres: "+text, "sqlstate", state)
}

// levelOf ranks a line. That connections are ended or refused while a server starts or stops (class
// 57P) is no news.
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

// last gives the last lines.
func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.recent, "; ")
}

// sawLock says that the server found another one's lock or shared memory.
func (o *output) sawLock() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lock
}
