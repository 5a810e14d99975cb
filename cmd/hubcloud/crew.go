package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// crew is the set of long-lived loops of one layer of the service. Each is started under a name,
// and stopped with the others of its layer; a loop that ends by itself brings the service down,
// with its name.
type crew struct {
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
	failed chan<- error
}

// newCrew makes a crew whose loops report their failure to failed, which must have room.
func newCrew(failed chan<- error) *crew {
	ctx, cancel := context.WithCancel(context.Background())
	return &crew{ctx: ctx, cancel: cancel, failed: failed}
}

// run starts a loop. It must return when its context ends.
func (c *crew) run(name string, loop func(ctx context.Context) error) {
	c.loops.Go(func() {
		err := loop(c.ctx)
		if c.ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return
		}
		if err == nil {
			err = errors.New("ended by itself")
		}
		select {
		case c.failed <- fmt.Errorf("%s: %w", name, err):
		default: // another loop has failed before: the service is going down already
		}
	})
}

// stop ends the loops and waits for them.
func (c *crew) stop() {
	c.cancel()
	c.loops.Wait()
}
