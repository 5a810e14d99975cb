package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"hubcloud/projections"
)

type projectionsRebuildCommand struct {
	readModels
	outputFlags
}

// Help says what goes on meanwhile.
func (*projectionsRebuildCommand) Help() string {
	return `Builds the read models from the directory log and the presence bucket in a schema of their own, beside those in use, and switches once they have
caught up. Reads and writes go on all the while. The old ones are kept until "hubcloud projections drop".

It can be interrupted at any instant: those in use stay as they are, and the next rebuild cleans up. Of two at once the second follows the first.
While a projection is stopped by an operator, it builds, and waits with the switch until it is resumed.

On a terminal it draws a bar; otherwise it prints a line every two seconds. With --json it prints one object at the end.

Example: hubcloud projections rebuild --data-dir /var/lib/hubcloud`
}

// rebuilt is what --json prints once the read models were switched.
type rebuilt struct {
	State    string  `json:"state"`
	Events   uint64  `json:"events"`
	Seconds  float64 `json:"seconds"`
	Followed bool    `json:"followed"`
}

// Run rebuilds, or follows who does.
func (c *projectionsRebuildCommand) Run(ctx context.Context, out Streams) error {
	models, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	bar := newBuildBar(out.Err, c.JSON)
	var last projections.BuildProgress
	err = models.Rebuild(ctx, func(p projections.BuildProgress) {
		last = p
		bar.show(p)
	})
	bar.finish()
	if ctx.Err() != nil {
		return fmt.Errorf("interrupted; the read models in use are as they were")
	}
	var stopped *projections.StoppedError
	if errors.As(err, &stopped) {
		return fmt.Errorf(
			"%w; the read models in use are as they were. `hubcloud projections status` says "+
				"what can be done about the event",
			err,
		)
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return printObject(
			out.Out,
			rebuilt{
				State:    "switched",
				Events:   last.Sequence,
				Seconds:  last.Elapsed.Seconds(),
				Followed: last.Followed,
			},
		)
	}
	_, err = fmt.Fprintf(
		out.Out,
		"Switched: the read models are built anew from %d events, in %.1f s. The old ones are "+
			"kept until `hubcloud projections drop`.\n",
		last.Sequence,
		last.Elapsed.Seconds(),
	)
	return err
}

const (
	barWidth = 30
	// lineEvery is the time between two lines of progress where there is no terminal.
	lineEvery = 2 * time.Second
)

// phaseNames say what a build does.
var phaseNames = map[string]string{
	projections.PhaseLoad: "loading", projections.PhaseFollow: "catching up",
	projections.PhaseCompare: "comparing",
	projections.PhaseSwitch:  "switching",
	projections.PhaseHeld:    "waiting: a projection is stopped by an operator (hubcloud projections resume)",
}

// buildBar shows how a build does: a bar on a terminal, lines elsewhere.
type buildBar struct {
	to       io.Writer
	terminal bool
	quiet    bool
	told     bool
	lastLine time.Time
	phase    string
}

func newBuildBar(to io.Writer, quiet bool) *buildBar {
	file, ok := to.(*os.File)
	return &buildBar{to: to, quiet: quiet, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

func (b *buildBar) show(p projections.BuildProgress) {
	name, known := phaseNames[p.Phase]
	if b.quiet || !known {
		return
	}
	if p.Followed && !b.told {
		fmt.Fprintf(
			b.to, "Another process builds the read models already (%s); following it.\n", p.Purpose,
		)
		b.told = true
	}
	text := fmt.Sprintf("%d of %d events", p.Sequence, p.Head)
	if p.PerSecond > 0 {
		text += fmt.Sprintf("  %.0f events/s", p.PerSecond)
	}
	if left, ok := p.Left(); ok {
		text += fmt.Sprintf("  %s left", left.Round(time.Second))
	}
	switch {
	case b.terminal:
		full := barWidth
		if p.Head > 0 {
			full = int(min(p.Sequence, p.Head) * barWidth / p.Head)
		}
		fmt.Fprintf(
			b.to, "\r\x1b[K[%s%s] %s  %s", strings.Repeat("#", full),
			strings.Repeat(".", barWidth-full), text, name,
		)
	case time.Since(b.lastLine) >= lineEvery || p.Phase != b.phase:
		fmt.Fprintf(b.to, "%s: %s\n", name, text)
		b.lastLine, b.phase = time.Now(), p.Phase
	}
}

// finish leaves the bar.
func (b *buildBar) finish() {
	if b.terminal && !b.quiet {
		fmt.Fprint(b.to, "\r\x1b[K")
	}
}
