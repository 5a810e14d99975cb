package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/projections"
	"hubcloud/projections/control"
)

// projectionsCommand groups the commands on the read models, the tables from which the API answers
// reads.
type projectionsCommand struct {
	Status  projectionsStatusCommand  `cmd:"" help:"Show how far each projection is, and why it is stopped."`
	Rebuild projectionsRebuildCommand `cmd:"" help:"Build the read models again beside those in use, and switch to them."`
	Verify  projectionsVerifyCommand  `cmd:"" help:"Build the read models again and compare those in use with them."`
	Drop    projectionsDropCommand    `cmd:"" help:"Drop unused read models: those replaced by a rebuild, and those of other versions."`
	Stop    projectionsStopCommand    `cmd:"" help:"Stop projections until they are resumed. Reads then show the state of that moment."`
	Resume  projectionsResumeCommand  `cmd:"" help:"Resume stopped projections."`
	Skip    projectionsSkipCommand    `cmd:"" help:"Step over the event that stops a projection."`
}

// readModelFlags name the service and the database whose read models a command works on.
type readModelFlags struct {
	operatorFlags
	PostgresURL string `help:"Database of the service, instead of that in postgres.json in --data-dir." name:"postgres-url" placeholder:"URL"`
}

// readModels are the open read models with the session that they use.
type readModels struct {
	*control.Control
	session *operator.Session
}

// open connects to the broker and the database. The caller closes the session.
func (f readModelFlags) open(ctx context.Context) (*readModels, error) {
	url := f.PostgresURL
	if url == "" {
		db, err := f.service().Dir().Database()
		if err != nil {
			return nil, err
		}
		url = db.URL
	}
	s, err := operator.Connect(ctx, f.service())
	if err != nil {
		return nil, err
	}
	models, err := s.ReadModels(ctx, url)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &readModels{Control: models, session: s}, nil
}

// with runs a short command with the read models.
func (f readModelFlags) with(
	ctx context.Context, command func(ctx context.Context, models *readModels) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	models, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer models.session.Close()
	return command(ctx, models)
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

func projectionJSONOf(p projections.Status) projectionJSON {
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
func (f outputFlags) printStatus(w io.Writer, all []projections.Status) error {
	if f.JSON {
		for _, status := range all {
			if err := printJSON(w, projectionJSONOf(status)); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "PROJECTION\tSTATE\tSEQUENCE\tHEAD\tLAG")
	for _, status := range all {
		line := projectionJSONOf(status)
		fmt.Fprintf(
			table, "%s\t%s\t%d\t%d\t%d events, %.1f s\n", line.Name,
			strings.ReplaceAll(line.State, "_", " "), line.Sequence, line.Head, line.Lag,
			line.LagSeconds,
		)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, status := range all {
		if status.Reason != "" {
			fmt.Fprintf(w, "\n%s: %s\n", status.Name, status.Reason)
		}
		switch {
		case status.State == projections.StateStoppedByOperator:
			fmt.Fprintf(w, "  Resume it with `hubcloud projections resume %s`.\n", status.Name)
		case status.Stopped != nil && status.Stopped.Sequence > status.Sequence:
			fmt.Fprintf(
				w,
				"  Run a program that understands the event, or step over it: "+
					"`hubcloud projections skip %d --why REASON`.\n",
				status.Stopped.Sequence,
			)
		}
	}
	return nil
}

type projectionsStatusCommand struct {
	readModelFlags
	outputFlags
}

// Help returns the long help text.
func (*projectionsStatusCommand) Help() string {
	return `Prints one line per projection. The projection "directory" has organizations, sites, hubs and members, "presence" the hubs' connections.

States: running; building (not complete yet); stopped (an event cannot be applied: its sequence, type and error are shown);
stopped_by_operator; unattended (no process has the role projector, or none reaches the database).

LAG is the number of events that the projection has not applied, and the age of the first of them.

Example: hubcloud projections status --json | jq 'select(.state != "running")'`
}

// Run prints the status, and the progress of a build.
func (c *projectionsStatusCommand) Run(ctx context.Context, out Streams) error {
	return c.with(ctx, func(ctx context.Context, models *readModels) error {
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

// projectionFlags name the projections that a command works on.
type projectionFlags struct {
	Projection []string `arg:"" optional:"" enum:"directory,presence" help:"directory or presence. Defaults to both."`
}

// names returns the chosen projections.
func (f projectionFlags) names() []string {
	if len(f.Projection) > 0 {
		return f.Projection
	}
	return projections.Names()
}

type projectionsStopCommand struct {
	readModelFlags
	outputFlags
	projectionFlags
	Why string `help:"Reason; the status shows it." placeholder:"TEXT"`
}

// Help returns the long help text.
func (*projectionsStopCommand) Help() string {
	return `When the command returns, no process writes to the read models until "hubcloud projections resume", also after restarts.

Meanwhile the API answers reads with the state of that moment. Changes (a site, a hub's name, a member) are stored and acknowledged; reads show
them once the projection is resumed. Revoked keys and removed members are rejected at once nevertheless. /readyz answers 200 "degraded".

Example: hubcloud projections stop directory --why "moving the database"`
}

// Run stops the projections.
func (c *projectionsStopCommand) Run(ctx context.Context, out Streams) error {
	return c.with(ctx, func(ctx context.Context, models *readModels) error {
		if err := models.Stop(ctx, c.names(), c.Why); err != nil {
			return err
		}
		all, err := models.Status(ctx)
		if err != nil {
			return err
		}
		return c.printStatus(out.Out, only(all, c.names()))
	})
}

type projectionsResumeCommand struct {
	readModelFlags
	outputFlags
	projectionFlags
}

// Run resumes the projections and waits, for some seconds, until they have caught up.
func (c *projectionsResumeCommand) Run(ctx context.Context, out Streams) error {
	return c.with(ctx, func(ctx context.Context, models *readModels) error {
		if err := models.Resume(ctx, c.names()); err != nil {
			return err
		}
		all, err := models.AwaitRunning(ctx, c.names())
		if err != nil {
			return err
		}
		return c.printStatus(out.Out, all)
	})
}

// only returns the statuses of the named projections, in the order of names.
func only(all []projections.Status, names []string) []projections.Status {
	var some []projections.Status
	for _, name := range names {
		for _, status := range all {
			if status.Name == name {
				some = append(some, status)
			}
		}
	}
	return some
}

type projectionsSkipCommand struct {
	readModelFlags
	outputFlags
	Sequence   uint64 `arg:"" help:"Sequence of the event that stops the projection, as the status shows it."`
	Why        string `help:"Reason for the skip. The directory log keeps it." required:"" placeholder:"TEXT"`
	Projection string `help:"directory or presence. Needed only when both are stopped at the same sequence." placeholder:"NAME"`
}

// Help returns the long help text.
func (*projectionsSkipCommand) Help() string {
	return `Only the event that stops a projection can be skipped. The change that it describes is then permanently missing from the read models, and later
events that build on it may stop the projection again. The directory log records the skip, so that rebuilds and later versions skip the event
too. If a program version exists that understands the event, run that version instead: the projection then continues by itself.

Example: hubcloud projections skip 4711 --why "written by a test tool, ticket 1234"`
}

// Run skips the event and waits until the projection has passed it.
func (c *projectionsSkipCommand) Run(ctx context.Context, out Streams) error {
	if c.Projection != "" && c.Projection != projections.Directory &&
		c.Projection != projections.Presence {
		return usage.Errorf("--projection %q: must be directory or presence", c.Projection)
	}
	if strings.TrimSpace(c.Why) == "" {
		return usage.Errorf("--why: must not be empty")
	}
	return c.with(ctx, func(ctx context.Context, models *readModels) error {
		_, now, err := models.Skip(
			ctx, models.session.Log, operator.Origin(), c.Projection, c.Sequence,
			strings.TrimSpace(c.Why),
		)
		if err != nil {
			return err
		}
		return c.printStatus(out.Out, []projections.Status{now})
	})
}
