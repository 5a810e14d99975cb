package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
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

// progress shows the progress of a command: as a bar on a terminal, otherwise as lines. It is
// silent beside JSON.
type progress struct {
	w        io.Writer
	terminal bool
	quiet    bool
}

func newProgress(w io.Writer, quiet bool) progress {
	file, ok := w.(*os.File)
	return progress{w: w, quiet: quiet, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// interval returns the shortest time between two reports.
func (p progress) interval() time.Duration {
	if p.terminal {
		return barInterval
	}
	return lineInterval
}

// bar draws a bar in place of the former one. part is the completed part, 0 to 1.
func (p progress) bar(title string, part float64, text string) {
	full := int(part * barWidth)
	fmt.Fprintf(
		p.w, "%s%s[%s%s] %s", clearLine, title, strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), text,
	)
}

// end erases the bar.
func (p progress) end() {
	if p.terminal && !p.quiet {
		fmt.Fprint(p.w, clearLine)
	}
}
