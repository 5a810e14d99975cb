package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"hubcloud/projections/rebuild"
	"hubcloud/projections/schema"
)

type projectionsRebuildCommand struct {
	readModelFlags
}

// rebuiltJSON is the result with --json.
type rebuiltJSON struct {
	State  string `json:"state"`
	Events uint64 `json:"events"`
	// Commits is how many commits of the journals the last reported states were made of.
	Commits  uint64  `json:"commits"`
	Seconds  float64 `json:"seconds"`
	Followed bool    `json:"followed"`
}

// Run rebuilds the read models, or follows a rebuild of another process.
func (c *projectionsRebuildCommand) Run(ctx context.Context, out Output) error {
	models, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	bar := newBuildProgress(out.Err, c.JSON)
	var last rebuild.Progress
	err = models.Rebuild(ctx, func(p rebuild.Progress) {
		last = p
		bar.report(p)
	})
	bar.end()
	if err := rebuildError(ctx, err); err != nil {
		return err
	}
	seconds, events := last.Elapsed.Seconds(), last.Sequence-last.Commits
	return c.show(
		out.Out, rebuiltJSON{
			State: "switched", Events: events, Commits: last.Commits, Seconds: seconds,
			Followed: last.Followed,
		},
		"Switched: the read models were rebuilt from %d events and %d commits of the journals in "+
			"%.1f s. The old ones are kept until `hubcloud projections drop`.\n",
		events, last.Commits, seconds,
	)
}

// rebuildError returns the error of a rebuild as the operator sees it; nil for nil, also if the
// command was interrupted after the switch.
func rebuildError(ctx context.Context, err error) error {
	var stopped *schema.StoppedError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errors.New("interrupted; the read models in use are unchanged")
	case errors.As(err, &stopped):
		return fmt.Errorf(
			"%w; the read models in use are unchanged. `hubcloud projections status` shows what "+
				"to do about the event",
			err,
		)
	}
	return err
}

// phaseNames are the phases of a build in words.
var phaseNames = map[string]string{
	rebuild.PhaseLoad: "loading", rebuild.PhaseFollow: "catching up",
	rebuild.PhaseCompare: "comparing",
	rebuild.PhaseSwitch:  "switching",
	rebuild.PhaseHeld: "waiting: a projection is stopped by an operator (hubcloud projections " +
		"resume)",
}

// buildProgress shows the progress of a build of read models.
type buildProgress struct {
	*progress
	announced bool
}

func newBuildProgress(w io.Writer, quiet bool) *buildProgress {
	return &buildProgress{progress: newProgress(w, quiet)}
}

// report reports the progress p. It announces, once, that another process builds.
func (b *buildProgress) report(p rebuild.Progress) {
	name, known := phaseNames[p.Phase]
	if b.quiet || !known {
		return
	}
	if p.Followed && !b.announced {
		fmt.Fprintf(
			b.w, "Another process builds the read models already (%s); following it.\n", p.Purpose,
		)
		b.announced = true
	}
	text := fmt.Sprintf("%d of %d events", p.Sequence, p.Head)
	if p.PerSecond > 0 {
		text += fmt.Sprintf("  %.0f events/s", p.PerSecond)
	}
	if left, ok := p.Left(); ok {
		text += fmt.Sprintf("  %s left", left.Round(time.Second))
	}
	part := 1.0
	if p.Head > 0 {
		part = float64(min(p.Sequence, p.Head)) / float64(p.Head)
	}
	b.show(name, part, text)
}
