package control

import (
	"context"

	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/streams/directory"
)

// WaitFor returns nil once the read models have the directory up to and including seq. It returns
// directory.ErrReadModelsStopped if the projection of the directory does not run, and ctx's error if
// ctx ends first.
func (c *Control) WaitFor(ctx context.Context, seq uint64) error {
	for ctx.Err() == nil {
		all, err := c.Status(ctx)
		if err != nil {
			return err
		}
		for _, p := range all {
			switch {
			case p.Name != projections.Directory:
			case p.Sequence >= seq:
				return nil
			case p.State != projections.StateRunning:
				return directory.ErrReadModelsStopped
			}
		}
		database.Pause(ctx, awaitPause)
	}
	return ctx.Err()
}
