package rebuild

import (
	"context"

	"hubcloud/projections/schema"
	"hubcloud/streams/directory"
)

// WaitFor returns nil once the read models have the directory up to and including seq. It returns
// directory.ErrReadModelsStopped if the projection of the directory does not run, and ctx's error
// if ctx ends first.
func (c *Control) WaitFor(ctx context.Context, seq uint64) error {
	for ctx.Err() == nil {
		all, err := c.Status(ctx)
		if err != nil {
			return err
		}
		for _, p := range all {
			switch {
			case p.Name != schema.Directory:
			case p.Sequence >= seq:
				return nil
			case p.State != schema.StateRunning:
				return directory.ErrReadModelsStopped
			}
		}
		schema.Pause(ctx, awaitPause)
	}
	return ctx.Err()
}
