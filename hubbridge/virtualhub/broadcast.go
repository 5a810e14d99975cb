package virtualhub

import (
	"context"
	"sync"
)

// broadcast wakes everyone who waits, each time. The zero broadcast is ready.
type broadcast struct {
	mu sync.Mutex
	ch chan struct{} // nil: nobody waits
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
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

// wait returns nil once reached is true, looking again after each send, or the context's error.
func (b *broadcast) wait(ctx context.Context, reached func() bool) error {
	for {
		next := b.next() // before looking: a send in between is not missed
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
