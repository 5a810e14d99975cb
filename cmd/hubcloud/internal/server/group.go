package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// group runs the long-lived loops of one layer of the server and stops them together. Its methods
// may be called concurrently, but run must not be called after stop.
type group struct {
	failed chan<- error
	loops  sync.WaitGroup

	mu      sync.Mutex
	cancels []context.CancelFunc
}

// newGroup returns a group that sends the first failure of a loop to failed. The channel needs a
// buffer of one.
func newGroup(failed chan<- error) *group { return &group{failed: failed} }

// run starts a loop, which must return when its context ends. Any earlier return is a failure,
// which run reports with the loop's name.
func (g *group) run(name string, loop func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	g.mu.Lock()
	g.cancels = append(g.cancels, cancel)
	g.mu.Unlock()
	g.loops.Go(func() {
		err := loop(ctx)
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return
		}
		if err == nil {
			err = errors.New("returned before it was stopped")
		}
		select {
		case g.failed <- fmt.Errorf("%s: %w", name, err):
		default: // another loop failed before, and the server stops already
		}
	})
}

// stop cancels the loops and waits until they have returned.
func (g *group) stop() {
	g.mu.Lock()
	for _, cancel := range g.cancels {
		cancel()
	}
	g.mu.Unlock()
	g.loops.Wait()
}
