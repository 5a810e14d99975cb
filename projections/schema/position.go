package schema

import (
	"context"
	"sync"
)

// Position is a position in a stream that goroutines can wait for. It only moves forward. Its zero
// value is at 0. All methods may be called concurrently.
type Position struct {
	mu sync.Mutex
	at uint64
	// version counts how often at has changed.
	version uint64
	// stopped is why the position does not move; nil while it may move.
	stopped error
	// changed is closed at the next change of at or stopped; nil while no goroutine waits.
	changed chan struct{}
}

// At returns the sequence number.
func (p *Position) At() uint64 {
	at, _ := p.Read()
	return at
}

// Read returns the sequence number, and its version for a later Set.
func (p *Position) Read() (at, version uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at, p.version
}

// Advance moves the position forward to seq and ends a Stop. A seq that is not after the position
// has no effect.
func (p *Position) Advance(seq uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq > p.at {
		p.stopped = nil
		p.move(seq)
	}
}

// Set moves the position to seq, which the caller read from the database after Read returned
// version. It moves backward only if the position has not changed since Read: then the database was
// restored. Otherwise a seq before the position is stale.
func (p *Position) Set(seq, version uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq > p.at || seq < p.at && version == p.version {
		p.move(seq)
	}
}

// Reset moves the position back to 0.
func (p *Position) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move(0)
}

func (p *Position) move(seq uint64) {
	p.at = seq
	p.version++
	p.wake()
}

// Stop makes every Wait for a later sequence number return reason; a nil reason ends the stop.
func (p *Position) Stop(reason error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = reason
	p.wake()
}

func (p *Position) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// Wait returns nil once the position is at seq or beyond. It returns the reason of a Stop, or ctx's
// error, if that comes first.
func (p *Position) Wait(ctx context.Context, seq uint64) error {
	for {
		p.mu.Lock()
		if p.at >= seq {
			p.mu.Unlock()
			return nil
		}
		if stopped := p.stopped; stopped != nil {
			p.mu.Unlock()
			return stopped
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
