package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"hubcloud/projections/schema"
)

type projectionsStatusCommand struct {
	readModelFlags
}

// Run prints the status, and the progress of a build.
func (c *projectionsStatusCommand) Run(ctx context.Context, out Output) error {
	return c.withReadModels(ctx, func(ctx context.Context, models *readModels) error {
		all, err := models.Status(ctx)
		if err != nil {
			return err
		}
		if err := c.printStatus(out.Out, all); err != nil || c.JSON {
			return err
		}
		build, running, err := models.Building(ctx)
		if err == nil && running {
			_, err = fmt.Fprintf(
				out.Out, "\nA build is running (%s, for %s): %s, %d of %d events.\n",
				build.Purpose, build.Elapsed.Round(time.Second), phaseNames[build.Phase],
				build.Sequence, build.Head,
			)
		}
		return err
	})
}

// projectionJSON is a projection's status with --json.
type projectionJSON struct {
	Name     string `json:"name"`
	Sequence uint64 `json:"sequence"`
	Head     uint64 `json:"head"`
	Lag      uint64 `json:"lag"`
	// LagSeconds is the age of the first event that is not projected.
	LagSeconds float64 `json:"lag_seconds"`
	State      string  `json:"state"`
	Reason     string  `json:"reason,omitempty"`
	// The event that stops the projection.
	StoppedSequence uint64 `json:"stopped_sequence,omitempty"`
	StoppedType     string `json:"stopped_type,omitempty"`
	StoppedError    string `json:"stopped_error,omitempty"`
}

func projectionJSONOf(p schema.Status) projectionJSON {
	status := projectionJSON{
		Name: p.Name, Sequence: p.Sequence, Head: p.Head, Lag: p.Lag,
		LagSeconds: math.Round(p.Behind.Seconds()*1000) / 1000,
		State:      p.State, Reason: p.Reason,
	}
	if p.Stopped != nil {
		status.StoppedSequence, status.StoppedType = p.Stopped.Sequence, p.Stopped.Type
		status.StoppedError = p.Stopped.Err.Error()
	}
	return status
}

// printStatus prints projections as a table with advice below, or as one JSON object per line.
func (f outputFlags) printStatus(w io.Writer, all []schema.Status) error {
	lines := make([]projectionJSON, 0, len(all))
	for _, status := range all {
		lines = append(lines, projectionJSONOf(status))
	}
	header := []string{"PROJECTION", "STATE", "SEQUENCE", "HEAD", "LAG"}
	err := list(w, f, each(lines), header, func(p projectionJSON) []string {
		return []string{
			p.Name, strings.ReplaceAll(p.State, "_", " "), strconv.FormatUint(p.Sequence, 10),
			strconv.FormatUint(p.Head, 10),
			fmt.Sprintf("%d events, %.1f s", p.Lag, p.LagSeconds),
		}
	})
	if err != nil || f.JSON {
		return err
	}
	for _, status := range all {
		if status.Reason != "" {
			fmt.Fprintf(w, "\n%s: %s\n", status.Name, status.Reason)
		}
		switch {
		case status.State == schema.StateStoppedByOperator:
			fmt.Fprintf(w, "  Resume it with `hubcloud projections resume %s`.\n", status.Name)
		case status.StoppedByEvent():
			fmt.Fprintf(
				w,
				"  Run a program that understands the event, or skip it: "+
					"`hubcloud projections skip %d --why REASON`.\n",
				status.Stopped.Sequence,
			)
		}
	}
	return nil
}
