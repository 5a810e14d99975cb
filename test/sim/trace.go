package sim

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Trace is the log of a run, in virtual time.
type Trace struct {
	begun time.Time
	mu    sync.Mutex
	lines []string
}

// NewTrace returns an empty log that begins now.
func NewTrace() *Trace { return &Trace{begun: time.Now()} }

// Add adds a line.
func (t *Trace) Add(who, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf("%12.6f %-16s %s", time.Since(t.begun).Seconds(), who, text))
}

// String returns the lines.
func (t *Trace) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
