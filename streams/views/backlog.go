package views

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams/journal"
)

// commitOverhead and recordOverhead are about the bytes of memory that a commit and a record take
// beside their texts and payloads.
const (
	commitOverhead = 256
	recordOverhead = 128
)

// commit is a commit of the journal whose records are being written.
type commit struct {
	*journal.Commit
	bytes int
	// remaining counts the records that are not written and published yet, and one while they are
	// added.
	remaining atomic.Int64
}

func newCommit(c *journal.Commit) *commit {
	counted := &commit{Commit: c, bytes: commitOverhead}
	for i := range c.Records {
		counted.bytes += recordOverhead + c.Records[i].Size()
	}
	counted.remaining.Store(int64(len(c.Records)) + 1)
	return counted
}

// entry is a record that waits to be written.
type entry struct {
	record *journal.Record
	commit *commit
}

// backlog bounds the commits in memory that are not completely written and published.
type backlog struct {
	limit int
	gauge prometheus.Gauge

	mu      sync.Mutex
	bytes   int
	stopped bool
	// changed is closed and replaced when the backlog gets smaller.
	changed chan struct{}
}

func newBacklog(limit int, gauge prometheus.Gauge) *backlog {
	return &backlog{limit: limit, gauge: gauge, changed: make(chan struct{})}
}

func (b *backlog) hasRoom(c *commit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hasRoomLocked(c)
}

// hasRoomLocked reports whether a commit fits. One that is larger than the limit fits into an empty
// backlog. The caller must hold b.mu.
func (b *backlog) hasRoomLocked(c *commit) bool { return b.bytes == 0 || b.bytes+c.bytes <= b.limit }

// add adds a commit once there is room. It returns false once the backlog is stopped.
func (b *backlog) add(c *commit) bool {
	for {
		b.mu.Lock()
		if b.stopped {
			b.mu.Unlock()
			return false
		}
		if b.hasRoomLocked(c) {
			b.bytes += c.bytes
			b.mu.Unlock()
			b.gauge.Add(float64(c.bytes))
			return true
		}
		changed := b.changed
		b.mu.Unlock()
		<-changed
	}
}

// done counts n records of a commit as written or left to a repair, and published.
func (b *backlog) done(c *commit, n int) {
	if c.remaining.Add(-int64(n)) > 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	b.bytes -= c.bytes
	b.gauge.Sub(float64(c.bytes))
	b.notify()
}

// notify wakes those who wait. The caller must hold b.mu.
func (b *backlog) notify() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// isCrowded reports whether a quarter of the backlog is used.
func (b *backlog) isCrowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes >= b.limit/4
}

// await returns once the backlog is empty. The error is ctx's, or that the backlog is stopped.
func (b *backlog) await(ctx context.Context) error {
	for {
		b.mu.Lock()
		bytes, stopped, changed := b.bytes, b.stopped, b.changed
		b.mu.Unlock()
		switch {
		case stopped:
			return errors.New("the backlog is stopped")
		case bytes == 0:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop empties the backlog and makes add fail.
func (b *backlog) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gauge.Sub(float64(b.bytes))
	b.bytes, b.stopped = 0, true
	b.notify()
}
