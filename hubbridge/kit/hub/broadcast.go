package hub

import (
	"context"
	"sync"
)

// broadcast wakes every waiting goroutine on each send. The zero broadcast is ready for use.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // closed by send; nil while no goroutine waits
}

// send wakes every goroutine in wait.
func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// wait returns nil once reached returns true, and the cause of ctx if ctx ends first. It calls
// reached at the start and after each send.
func (b *broadcast) wait(ctx context.Context, reached func() bool) error {
	for {
		next := b.next() // before the call of reached, so that no send is missed
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

func (b *broadcast) next() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}
