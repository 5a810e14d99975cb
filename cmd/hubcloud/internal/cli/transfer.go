package cli

import (
	"fmt"
	"io"
	"time"

	"hubcloud/cmd/hubcloud/internal/doctor"
	"hubcloud/streams/backup"
)

// transfer shows the progress of a backup or a restore.
type transfer struct {
	*progress
	began time.Time
}

// newTransfer returns a transfer whose first report is due after a moment: most end before.
func newTransfer(w io.Writer, title string, quiet bool) *transfer {
	t := &transfer{newProgress(w, quiet), time.Now()}
	t.title, t.shownAt = title, t.began
	return t
}

// report reports the progress p.
func (t *transfer) report(p backup.Progress) {
	part := 1.0
	if p.Total > 0 {
		part = float64(p.Done) / float64(p.Total)
	}
	text := fmt.Sprintf("%3.0f %%  %s of %s", 100*part, doctor.Size(p.Done), doctor.Size(p.Total))
	if part > 0.01 && part < 1 {
		left := time.Duration(float64(time.Since(t.began)) * (1 - part) / part)
		text += fmt.Sprintf("  %s left", (left + time.Second).Truncate(time.Second))
	}
	t.show(t.title, part, text+"  "+p.Step)
}
