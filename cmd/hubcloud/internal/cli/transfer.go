package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"hubcloud/streams/backup"
)

// drawEvery is how often a bar is drawn on a terminal; elsewhere a line is outputFlags every lineEvery.
const drawEvery = 100 * time.Millisecond

// transfer shows how far a backup or a restore has come: a bar on a terminal, and a line now and
// then elsewhere. Safe for concurrent use.
type transfer struct {
	w        io.Writer
	what     string
	terminal bool
	quiet    bool

	mu    sync.Mutex
	began time.Time
	shown time.Time
}

func newTransfer(w io.Writer, what string, quiet bool) *transfer {
	file, ok := w.(*os.File)
	return &transfer{
		w: w, what: what, quiet: quiet, terminal: ok && term.IsTerminal(int(file.Fd())),
		began: time.Now(), shown: time.Now(),
	}
}

// tell takes how far it is.
func (t *transfer) tell(p backup.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet {
		return
	}
	every := lineEvery
	if t.terminal {
		every = drawEvery
	}
	if now := time.Now(); now.Sub(t.shown) >= every {
		t.shown = now
		t.show(p, now.Sub(t.began))
	}
}

func (t *transfer) show(p backup.Progress, took time.Duration) {
	part := 1.0
	if p.Total > 0 {
		part = float64(p.Done) / float64(p.Total)
	}
	text := fmt.Sprintf("%3.0f %%  %s of %s", 100*part, byteText(p.Done), byteText(p.Total))
	if part > 0.01 && part < 1 {
		text += fmt.Sprintf(
			"  %s left",
			(time.Duration(float64(took)*(1-part)/part) + time.Second).Truncate(time.Second),
		)
	}
	if !t.terminal {
		fmt.Fprintf(t.w, "%s: %s  %s\n", t.what, text, p.Step)
		return
	}
	full := int(part * barWidth)
	fmt.Fprintf(
		t.w, "\r\x1b[K%s [%s%s] %s  %s", t.what, strings.Repeat("#", full),
		strings.Repeat(".", barWidth-full), text, p.Step,
	)
}

// end takes the bar away.
func (t *transfer) end() {
	if t.terminal && !t.quiet {
		fmt.Fprint(t.w, "\r\x1b[K")
	}
}

// byteText writes a number of bytes for people.
func byteText(n int64) string {
	value, unit := float64(n), "B"
	for _, next := range []string{"kB", "MB", "GB", "TB"} {
		if value < 1000 {
			break
		}
		value, unit = value/1000, next
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
