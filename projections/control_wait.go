package projections

import (
	"context"
	"time"

	"hubcloud/streams/directory"
)

// waitPoll is the pause between two looks at the read models.
const waitPoll = 20 * time.Millisecond

// WaitFor waits until the read models have every event of the directory up to a sequence. It
// returns directory.ErrStandingStill when the projection of the directory does not run.
func (c *Control) WaitFor(ctx context.Context, seq uint64) error {
	for {
		all, err := c.Status(ctx)
		if err != nil {
			return err
		}
		for _, p := range all {
			switch {
			case p.Name != DirectoryProjection:
			case p.Sequence >= seq:
				return nil
			case p.State != StateRunning:
				return directory.ErrStandingStill
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitPoll):
		}
	}
}
