// Package notify wakes goroutines that wait for a state to change.
package notify

import (
	"context"
	"sync"
)

// Broadcast wakes every waiting goroutine on each Send. The zero Broadcast is ready for use.
type Broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed by Send; nil while no goroutine waits
}

// Send wakes every goroutine in Wait.
func (b *Broadcast) Send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Wait returns nil once reached returns true, and the cause of ctx if ctx ends first. It calls
// reached at the start and after each Send.
func (b *Broadcast) Wait(ctx context.Context, reached func() bool) error {
	for {
		next := b.next() // before the call of reached, so that no Send is missed
		if reached() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next:
		}
	}
}

func (b *Broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Wake sends to ch, which has a capacity of one, unless a value already waits in it. It never
// blocks.
func Wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
