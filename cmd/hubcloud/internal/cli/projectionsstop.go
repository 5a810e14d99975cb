package cli

import (
	"context"

	"hubcloud/projections/schema"
)

// projectionFlags name the projections that a command works on.
type projectionFlags struct {
	Projection []string `arg:"" optional:"" enum:"directory,presence,devices" help:"directory, presence or devices. Defaults to all."`
}

// names returns the chosen projections.
func (f projectionFlags) names() []string {
	if len(f.Projection) > 0 {
		return f.Projection
	}
	return schema.Names()
}

type projectionsStopCommand struct {
	readModelFlags
	projectionFlags
	Why string `help:"Reason; the status shows it." placeholder:"TEXT"`
}

// Run stops the projections.
func (c *projectionsStopCommand) Run(ctx context.Context, out Output) error {
	return c.withReadModels(ctx, func(ctx context.Context, models *readModels) error {
		if err := models.Stop(ctx, c.names(), c.Why); err != nil {
			return err
		}
		all, err := models.Status(ctx)
		if err != nil {
			return err
		}
		return c.printStatus(out.Out, statusesOf(all, c.names()))
	})
}

type projectionsResumeCommand struct {
	readModelFlags
	projectionFlags
}

// Run resumes the projections and waits, for some seconds, until they have caught up.
func (c *projectionsResumeCommand) Run(ctx context.Context, out Output) error {
	return c.withReadModels(ctx, func(ctx context.Context, models *readModels) error {
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

// statusesOf returns the statuses of the named projections, in the order of names.
func statusesOf(all []schema.Status, names []string) []schema.Status {
	var some []schema.Status
	for _, name := range names {
		for _, status := range all {
			if status.Name == name {
				some = append(some, status)
			}
		}
	}
	return some
}
