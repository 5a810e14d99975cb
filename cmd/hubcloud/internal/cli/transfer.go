package cli

import (
	"fmt"
	"io"
	"sync"
	"time"

	"hubcloud/streams/backup"
)

// transfer shows the progress of a backup or a restore. Its methods may be called concurrently.
type transfer struct {
	progress
	title string

	mu      sync.Mutex
	began   time.Time
	shownAt time.Time
}

func newTransfer(w io.Writer, title string, quiet bool) *transfer {
	now := time.Now()
	return &transfer{progress: newProgress(w, quiet), title: title, began: now, shownAt: now}
}

// show reports the progress p, unless another report was shown a moment ago.
func (t *transfer) show(p backup.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.quiet || now.Sub(t.shownAt) < t.interval() {
		return
	}
	t.shownAt = now
	part := 1.0
	if p.Total > 0 {
		part = float64(p.Done) / float64(p.Total)
	}
	text := fmt.Sprintf("%3.0f %%  %s of %s", 100*part, byteText(p.Done), byteText(p.Total))
	if part > 0.01 && part < 1 {
		left := time.Duration(float64(now.Sub(t.began)) * (1 - part) / part)
		text += fmt.Sprintf("  %s left", (left + time.Second).Truncate(time.Second))
	}
	if t.terminal {
		t.bar(t.title+" ", part, text+"  "+p.Step)
		return
	}
	fmt.Fprintf(t.w, "%s: %s  %s\n", t.title, text, p.Step)
}

// byteText formats a number of bytes with a decimal unit.
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
