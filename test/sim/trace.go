package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Trace is the log of a run, in virtual time.
type Trace struct {
	begun time.Time
	mu    sync.Mutex
	lines []line
}

// line is a line of the log.
type line struct {
	at        time.Duration
	who, text string
}

// NewTrace returns an empty log that begins now.
func NewTrace() *Trace { return &Trace{begun: time.Now()} }

// Add adds a line.
func (t *Trace) Add(who, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line{time.Since(t.begun), who, text})
}

// Extract returns the lines of some, or all lines without any.
func (t *Trace) Extract(of ...string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	for _, l := range t.lines {
		if len(of) == 0 || slices.Contains(of, l.who) {
			fmt.Fprintf(&text, "%12.6f %-18s %s\n", l.at.Seconds(), l.who, l.text)
		}
	}
	return text.String()
}

// Compare returns how many lines at the begin of two logs have the same time and origin, how many
// lines the longer one has, and the time of the last line that is the same. It does not compare
// texts, which have random names of folders.
func (t *Trace) Compare(other *Trace) (same, lines int, until time.Duration) {
	lines = max(len(t.lines), len(other.lines))
	for i := range min(len(t.lines), len(other.lines)) {
		a, b := t.lines[i], other.lines[i]
		if a.at != b.at || a.who != b.who {
			break
		}
		same, until = i+1, a.at
	}
	return same, lines, until
}
