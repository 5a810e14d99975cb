package cli

import (
	"context"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"hubcloud/cmd/hubcloud/internal/datadir"
	"hubcloud/cmd/hubcloud/internal/operator"
	"hubcloud/cmd/hubcloud/internal/usage"
	"hubcloud/projections"
)

// projectionsCommand holds the commands about the read models: what lists and single reads are
// answered from, made from the streams.
type projectionsCommand struct {
	Status  projectionsStatusCommand  `cmd:"" help:"How far each projection is, how far it has to go, and why it stands still if it does."`
	Rebuild projectionsRebuildCommand `cmd:"" help:"Build the read models anew, beside those in use, and switch once they have caught up."`
	Verify  projectionsVerifyCommand  `cmd:"" help:"Build the read models anew in a scratch schema, and print every difference to those in use."`
	Drop    projectionsDropCommand    `cmd:"" help:"Drop read models that nobody uses any more: the old ones that rebuilds keep, and those of other versions."`
	Stop    projectionsStopCommand    `cmd:"" help:"Stop projections until they are resumed, over restarts too: reads go on and show what was there."`
	Resume  projectionsResumeCommand  `cmd:"" help:"Have stopped projections go on."`
	Skip    projectionsSkipCommand    `cmd:"" help:"Step over the event that stops a projection, and record that in the directory log."`
}

// readModels is an operator's command on the read models of a running service.
type readModels struct {
	operatorFlags
	PostgresURL string `help:"Database of the service, instead of the one that postgres.json in --data-dir names." name:"postgres-url" placeholder:"URL"`
}

// control is the read models, as an operator sees to them.
type control struct {
	*projections.Control
	session *operator.Session
}

// open reaches the running service's broker and database.
func (r readModels) open(ctx context.Context) (*control, error) {
	url := r.PostgresURL
	if url == "" {
		db, err := datadir.Dir(r.DataDir).Database()
		if err != nil {
			return nil, err
		}
		url = db.URL
	}
	s, err := operator.Connect(ctx, r.service())
	if err != nil {
		return nil, err
	}
	models, err := s.ReadModels(ctx, url)
	if err != nil {
		s.Close()
		return nil, err
	}
	return &control{Control: models, session: s}, nil
}

// see runs one short command.
func (r readModels) see(
	ctx context.Context, command func(ctx context.Context, c *control) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, operatorTimeout)
	defer cancel()
	c, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer c.session.Close()
	return command(ctx, c)
}

// projectionLine is a projection's status as --json prints it.
type projectionLine struct {
	Name     string `json:"name"`
	Sequence uint64 `json:"sequence"`
	Head     uint64 `json:"head"`
	Lag      uint64 `json:"lag"`
	// LagSeconds is the age of the first event that is not projected.
	LagSeconds float64 `json:"lag_seconds"`
	State      string  `json:"state"`
	Reason     string  `json:"reason,omitempty"`
	// The event that stops it.
	StoppedSequence uint64 `json:"stopped_sequence,omitempty"`
	StoppedType     string `json:"stopped_type,omitempty"`
	StoppedError    string `json:"stopped_error,omitempty"`
}

func lineOf(p projections.ProjectionStatus) projectionLine {
	line := projectionLine{
		Name: p.Name, Sequence: p.Sequence, Head: p.Head, Lag: p.Lag,
		LagSeconds: math.Round(p.Behind.Seconds()*1000) / 1000,
		State:      p.State, Reason: p.Reason,
	}
	if p.Stopped != nil {
		line.StoppedSequence, line.StoppedType, line.StoppedError = p.Stopped.Sequence, p.Stopped.Type, p.Stopped.Err.Error()
	}
	return line
}

// printStatus prints how projections are: a table for people, with what can be done below it, or
// one object a line.
func (p outputFlags) printStatus(w io.Writer, all []projections.ProjectionStatus) error {
	if p.JSON {
		for _, status := range all {
			if err := printObject(w, lineOf(status)); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "PROJECTION\tSTATE\tSEQUENCE\tHEAD\tLAG")
	for _, status := range all {
		line := lineOf(status)
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
			fmt.Fprintf(w, "  It goes on with `hubcloud projections resume %s`.\n", status.Name)
		case status.Stopped != nil && status.Stopped.Sequence > status.Sequence:
			fmt.Fprintf(
				w,
				"  It goes on once a program that understands the event runs, or without the event: "+
					"`hubcloud projections skip %d --why REASON`.\n",
				status.Stopped.Sequence,
			)
		}
	}
	return nil
}

type projectionsStatusCommand struct {
	readModels
	outputFlags
}

// Help says how to read the answer.
func (*projectionsStatusCommand) Help() string {
	return `Prints one line a projection: "directory" makes everything from the log of who owns what, "presence" whether hubs are connected.

States: running; building (never been complete yet); stopped (an event cannot be applied: its sequence, type and error are shown);
stopped_by_operator; unattended (no process has the role projector, or none reaches the database).

LAG is how many sequence numbers lie between the projection and the end of its stream, and the age of the first event that it does not have.

Example: hubcloud projections status --json | jq 'select(.state != "running")'`
}

// Run prints it.
func (c *projectionsStatusCommand) Run(ctx context.Context, out Streams) error {
	return c.see(ctx, func(ctx context.Context, models *control) error {
		all, err := models.Status(ctx)
		if err != nil {
			return err
		}
		if err := c.printStatus(out.Out, all); err != nil || c.JSON {
			return err
		}
		build, under, err := models.Building(ctx)
		if err == nil && under {
			_, err = fmt.Fprintf(
				out.Out, "\nA build is under way (%s, for %s): %s, %d of %d events.\n",
				build.Purpose, build.Elapsed.Round(time.Second), phaseNames[build.Phase],
				build.Sequence, build.Head,
			)
		}
		return err
	})
}

// whichProjections are the projections that a command is about.
type whichProjections struct {
	Projection []string `arg:"" optional:"" enum:"directory,presence" help:"Which: directory, presence, or both when none is named."`
}

func (w whichProjections) names() []string {
	if len(w.Projection) > 0 {
		return w.Projection
	}
	return []string{projections.DirectoryProjection, projections.PresenceProjection}
}

type projectionsStopCommand struct {
	readModels
	outputFlags
	whichProjections
	Why string `help:"Reason, which status shows." placeholder:"TEXT"`
}

// Help says what a stop means to others.
func (*projectionsStopCommand) Help() string {
	return `When it returns, nothing more is written to the read models, by any process, until "hubcloud projections resume", over restarts too.

Meanwhile the API answers reads as of that moment. Changes (a site, a hub's name, a member) are stored and answered, and can be read
once the projection goes on; revoked keys and removed members are refused at once all the same. /readyz says "degraded" and stays 200.

Example: hubcloud projections stop directory --why "moving the database"`
}

// Run stops them.
func (c *projectionsStopCommand) Run(ctx context.Context, out Streams) error {
	return c.see(ctx, func(ctx context.Context, models *control) error {
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
	readModels
	outputFlags
	whichProjections
}

// Run resumes them, and waits until they have caught up, for some seconds.
func (c *projectionsResumeCommand) Run(ctx context.Context, out Streams) error {
	return c.see(ctx, func(ctx context.Context, models *control) error {
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

func only(all []projections.ProjectionStatus, names []string) []projections.ProjectionStatus {
	var some []projections.ProjectionStatus
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
	readModels
	outputFlags
	Sequence   uint64 `arg:"" help:"Sequence of the event that stops a projection, as status shows it."`
	Why        string `help:"Why it can be done without. It is kept in the directory log for ever." required:"" placeholder:"TEXT"`
	Projection string `help:"Which projection, when both are stopped at the same sequence: directory or presence." placeholder:"NAME"`
}

// Help says what is skipped.
func (*projectionsSkipCommand) Help() string {
	return `Only the very event that stops a projection can be skipped. What it says is then missing from the read models, for good: later events
that build on it may stop the projection in their turn. The decision is recorded in the directory log, and every rebuild and every new version
steps over the event too. Prefer a program that understands the event, if there is one: the projection goes on by itself once it runs.

Example: hubcloud projections skip 4711 --why "written by a test tool, ticket 1234"`
}

// Run skips it, and waits until the projection has gone on.
func (c *projectionsSkipCommand) Run(ctx context.Context, out Streams) error {
	if c.Projection != "" && c.Projection != projections.DirectoryProjection &&
		c.Projection != projections.PresenceProjection {
		return usage.Errorf("--projection %q: directory or presence", c.Projection)
	}
	if strings.TrimSpace(c.Why) == "" {
		return usage.Errorf("--why: say why the event can be done without")
	}
	return c.see(ctx, func(ctx context.Context, models *control) error {
		_, now, err := models.Skip(
			ctx, models.session.Log, operator.Origin(), c.Projection, c.Sequence,
			strings.TrimSpace(c.Why),
		)
		if err != nil {
			return err
		}
		return c.printStatus(out.Out, []projections.ProjectionStatus{now})
	})
}
