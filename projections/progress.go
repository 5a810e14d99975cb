package projections

import (
	"context"
	"sync"
)

// progress is a position that goes forward, and those who wait for it. The zero value stands at 0.
type progress struct {
	mu sync.Mutex
	at uint64
	// changes counts the changes of at.
	changes uint64
	// halted is why it goes no further for now; nil while it does.
	halted error
	// moved is closed at the next change of at or halted; nil while nobody waits.
	moved chan struct{}
}

// position gives where it stands, and a number that set takes to tell whether it has moved since.
func (p *progress) position() (at, changes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.changes
}

// advance moves forward to seq; it never goes back.
func (p *progress) advance(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq > p.at {
		p.halted = nil
		p.move(seq)
	}
}

// set takes what was read elsewhere, also when that is further back: a database can be restored.
// changes is position's from before it was read; what has moved meanwhile only goes forward.
func (p *progress) set(seq, changes uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq > p.at || seq < p.at && changes == p.changes {
		p.move(seq)
	}
}

func (p *progress) move(seq uint64) {
	p.at = seq
	p.changes++
	p.wake()
}

// halt says why it goes no further, and with nil that it does.
func (p *progress) halt(why error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halted = why
	p.wake()
}

func (p *progress) wake() {
	if p.moved != nil {
		close(p.moved)
		p.moved = nil
	}
}

// wait returns nil once the position is at seq or beyond, and otherwise with why it is halted, or
// with ctx's error.
func (p *progress) wait(ctx context.Context, seq uint64) error {
	for {
		p.mu.Lock()
		if p.at >= seq {
			p.mu.Unlock()
			return nil
		}
		if halted := p.halted; halted != nil {
			p.mu.Unlock()
			return halted
		}
		if p.moved == nil {
			p.moved = make(chan struct{})
		}
		moved := p.moved
		p.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
