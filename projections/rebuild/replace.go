package rebuild

import (
	"context"
	"errors"
	"sync"
	"time"

	"hubcloud/projections/schema"
)

const (
	// switchDistance is how many events the target may lack when a switch begins. The projector
	// waits while the target applies them.
	switchDistance = 200
	// switchPause is the pause between two tries to switch.
	switchPause = 100 * time.Millisecond
)

// replace builds the target and replaces the read models in use with it: it loads the directory up
// to its head, follows all streams, and switches once the target has caught up. It returns the new
// name of the replaced schema.
func (b *build) replace(ctx context.Context) (replaced string, err error) {
	if err := b.readHeads(ctx, nil); err != nil {
		return "", err
	}
	for _, c := range b.copies {
		c.begin = c.head.Load()
	}
	if err := b.loadOrApply(ctx, b.directory().begin); err != nil {
		return "", err
	}
	b.phase.Store(PhaseFollow)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	writing, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	stop := func() {
		cancel()
		following.Wait()
	}
	defer stop()
	following.Go(func() {
		if err := b.reach(writing, nil, b.copies...); writing.Err() == nil {
			fail(err)
		}
	})
	replaced, err = b.switchWhenNear(ctx, stop)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return replaced, err
}

// loadOrApply loads the directory up to a sequence. If it cannot, it creates the target's tables
// empty, for events that are applied one by one.
func (b *build) loadOrApply(ctx context.Context, until uint64) error {
	err := b.load(ctx, until)
	if !errors.Is(err, errContradiction) {
		return err
	}
	b.cfg.Logger.Warn("load failed; applying the events one by one", "error", err)
	return b.startOver(ctx)
}

// switchWhenNear waits until the target has what the streams had at the beginning, and about what
// the read models in use have, and switches. stop ends what writes to the target.
func (b *build) switchWhenNear(ctx context.Context, stop func()) (replaced string, err error) {
	for {
		near, err := b.isNear(ctx)
		if err != nil {
			return "", err
		}
		if near {
			replaced, err := b.trySwitch(ctx, stop)
			if !errors.Is(err, errNotYet) {
				return replaced, err
			}
		}
		if schema.Pause(ctx, switchPause); ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
}

func (b *build) isNear(ctx context.Context) (near bool, err error) {
	if err := b.readHeads(ctx, nil); err != nil {
		return false, err
	}
	b.connMu.Lock()
	live, err := readPositions(ctx, b.conn)
	b.connMu.Unlock()
	if err != nil {
		return false, err
	}
	for _, c := range b.copies {
		at := c.at.At()
		if at < c.begin || at+switchDistance < min(live.of(c), c.head.Load()) {
			return false, nil
		}
	}
	return true, nil
}
