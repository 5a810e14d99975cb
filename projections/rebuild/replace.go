package rebuild

import (
	"context"
	"errors"
	"sync"
	"time"

	"hubcloud/projections/database"
)

const (
	// switchDistance is how many events the target may lack when a switch begins. The projector
	// waits while the target applies them.
	switchDistance = 200
	// switchPause is the pause between two tries to switch.
	switchPause = 100 * time.Millisecond
)

// replace builds the target and replaces the read models in use with it: it loads the directory up
// to its head, follows both streams, and switches once the target has caught up. It returns the new
// name of the replaced schema.
func (b *build) replace(ctx context.Context) (replaced string, err error) {
	head, err := b.cfg.Directory.Head(ctx, 0)
	if err != nil {
		return "", err
	}
	loaded := head
	err = b.load(ctx, head)
	if errors.Is(err, errContradiction) {
		b.cfg.Logger.Warn("load failed; applying the events one by one", "error", err)
		loaded = 0
		err = b.startOver(ctx)
	}
	if err != nil {
		return "", err
	}
	b.phase.Store(PhaseFollow)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	f := b.startFollowing(ctx, fail, loaded)
	defer f.stop()
	replaced, err = b.switchWhenNear(ctx, head, f)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return replaced, err
}

// following are the two goroutines that write to the target.
type following struct {
	cancel context.CancelFunc
	group  sync.WaitGroup
}

// startFollowing starts the two goroutines. When one of them fails, it calls fail with its error,
// which cancels ctx.
func (b *build) startFollowing(
	ctx context.Context, fail context.CancelCauseFunc, loaded uint64,
) *following {
	writing, cancel := context.WithCancel(ctx)
	f := &following{cancel: cancel}
	for _, follow := range []func() error{
		func() error { return b.followDirectory(writing, loaded) },
		func() error { return b.followPresence(writing, nil) },
	} {
		f.group.Go(func() {
			if err := follow(); writing.Err() == nil {
				fail(err)
			}
		})
	}
	return f
}

// stop ends the goroutines and waits for them: the target no longer changes. Further calls do
// nothing.
func (f *following) stop() {
	f.cancel()
	f.group.Wait()
}

// switchWhenNear waits until the target has the directory up to until and is near its head, and
// switches.
func (b *build) switchWhenNear(
	ctx context.Context, until uint64, f *following,
) (replaced string, err error) {
	for {
		head, err := b.cfg.Directory.Head(ctx, 0)
		if err != nil {
			return "", err
		}
		b.head.Store(head)
		if at := b.directoryAt.At(); at >= until && at+switchDistance >= head {
			replaced, err := b.trySwitch(ctx, f)
			if !errors.Is(err, errNotYet) {
				return replaced, err
			}
		}
		if database.Pause(ctx, switchPause); ctx.Err() != nil {
			return "", ctx.Err()
		}
	}
}
