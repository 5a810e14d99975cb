package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	// barWidth is the width of a progress bar in characters.
	barWidth = 30
	// barInterval is the shortest time between two draws of a bar.
	barInterval = 100 * time.Millisecond
	// lineInterval is the shortest time between two lines of progress without a terminal.
	lineInterval = 2 * time.Second
	// clearLine returns to the begin of the line and erases it.
	clearLine = "\r\x1b[K"
)

// progress shows how far a command is: as a bar on a terminal, otherwise as lines. It is silent
// beside JSON. Its methods may be called concurrently.
type progress struct {
	w        io.Writer
	terminal bool
	quiet    bool

	mu sync.Mutex
	// title and shownAt are of the last report.
	title   string
	shownAt time.Time
}

func newProgress(w io.Writer, quiet bool) *progress {
	file, ok := w.(*os.File)
	return &progress{w: w, quiet: quiet, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// show reports the completed part of the work, 0 to 1, unless a report with the same title was
// shown a moment ago.
func (p *progress) show(title string, part float64, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, interval := time.Now(), lineInterval
	if p.terminal {
		interval = barInterval
	}
	if p.quiet || title == p.title && now.Sub(p.shownAt) < interval {
		return
	}
	p.title, p.shownAt = title, now
	if !p.terminal {
		fmt.Fprintf(p.w, "%s: %s\n", title, text)
		return
	}
	full := int(part * barWidth)
	fmt.Fprintf(
		p.w, "%s%s [%s%s] %s", clearLine, title, strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), text,
	)
}

// end erases the bar.
func (p *progress) end() {
	if p.terminal && !p.quiet {
		fmt.Fprint(p.w, clearLine)
	}
}
