package cli

import (
	"context"
	"strings"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/projections/schema"
)

type projectionsSkipCommand struct {
	readModelFlags
	Sequence   uint64 `arg:"" help:"Sequence of the event that stops the projection, as the status shows it."`
	Why        string `help:"Reason for the skip. The directory log keeps it." required:"" placeholder:"TEXT"`
	Projection string `help:"directory or presence. Needed only when both are stopped at the same sequence." placeholder:"NAME"`
}

// Run skips the event and waits until the projection has passed it.
func (c *projectionsSkipCommand) Run(ctx context.Context, out Output) error {
	if c.Projection != "" && c.Projection != schema.Directory &&
		c.Projection != schema.Presence {
		return installation.Usagef("--projection %q: must be directory or presence", c.Projection)
	}
	if strings.TrimSpace(c.Why) == "" {
		return installation.Usagef("--why: must not be empty")
	}
	return c.withReadModels(ctx, func(ctx context.Context, models *readModels) error {
		now, err := models.Skip(
			ctx, models.session.Log, installation.OperatorOrigin(), c.Projection, c.Sequence,
			strings.TrimSpace(c.Why),
		)
		if err != nil {
			return err
		}
		return c.printStatus(out.Out, []schema.Status{now})
	})
}
