package cli

import (
	"context"
	"strings"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/projections/schema"
)

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
