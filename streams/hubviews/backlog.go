package hubviews

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

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
	journal.Commit
	bytes int
	// remaining counts the records that are not written and published yet, and one while Add runs.
	remaining atomic.Int64
}

func newCommit(c journal.Commit) *commit {
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

// backlog has the commits that are not completely written, and the views that lack records of
// commits that are no more in it.
type backlog struct {
	limit   int
	metrics *Metrics

	mu      sync.Mutex
	bytes   int
	commits []*commit
	// last is the last commit that was added, and position the last one up to which every commit
	// has left the backlog.
	last, position uint64
	// behind has, for each view that is behind, the first commit that it may lack; noCommit if it
	// is only suspected to be incomplete.
	behind map[*view]uint64
	// changed is closed and replaced when the backlog gets smaller and somebody waits for that.
	changed chan struct{}
	waiting bool
	stopped bool
}

// add adds a commit once there is room. A commit that is larger than the limit is added to an empty
// backlog. The error is ctx's, or ErrStopped.
func (b *backlog) add(ctx context.Context, c *commit) error {
	for {
		b.mu.Lock()
		if b.stopped {
			b.mu.Unlock()
			return ErrStopped
		}
		if b.bytes == 0 || b.bytes+c.bytes <= b.limit {
			b.bytes += c.bytes
			b.commits, b.last = append(b.commits, c), c.Seq
			b.mu.Unlock()
			b.metrics.backlogBytes.Add(float64(c.bytes))
			return nil
		}
		changed := b.wait()
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// wait returns a channel that is closed at the next change. The caller must hold b.mu.
func (b *backlog) wait() <-chan struct{} {
	b.waiting = true
	return b.changed
}

// notify closes the channel that wait returned. The caller must hold b.mu.
func (b *backlog) notify() {
	if b.waiting {
		close(b.changed)
		b.changed, b.waiting = make(chan struct{}), false
	}
}

// done counts n records of a commit as written or left to a repair, and published.
func (b *backlog) done(c *commit, n int) {
	if c.remaining.Add(-int64(n)) > 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes -= c.bytes
	b.metrics.backlogBytes.Sub(float64(c.bytes))
	for len(b.commits) > 0 && b.commits[0].remaining.Load() == 0 {
		b.position = b.commits[0].Seq
		b.commits[0] = nil
		b.commits = b.commits[1:]
	}
	b.notify()
}

// crowded reports whether a quarter of the backlog is used.
func (b *backlog) crowded() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes >= b.limit/4
}

// noCommit stands for no commit of the journal.
const noCommit = math.MaxUint64

// lacks records that a view may lack the records of a commit and of later ones.
func (b *backlog) lacks(v *view, commit uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	first, known := b.behind[v]
	if !known {
		b.metrics.behind.Inc()
		first = commit
	}
	b.behind[v] = min(first, commit)
}

// complete records that a view lacks nothing but what is in the backlog.
func (b *backlog) complete(v *view) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.behind[v]; known {
		delete(b.behind, v)
		b.metrics.behind.Dec()
		b.notify()
	}
}

// written returns the last commit up to which all views are complete.
func (b *backlog) written() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.writtenLocked()
}

// writtenLocked is written. The caller must hold b.mu.
func (b *backlog) writtenLocked() uint64 {
	position := b.position
	for _, first := range b.behind {
		position = min(position, max(first, 1)-1)
	}
	return position
}

// unwritten returns how many commits there are after the one that written returns.
func (b *backlog) unwritten() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last - b.writtenLocked()
}

// state returns how much there is to write: records in the backlog, and views that lack others. The
// channel is closed at the next change.
func (b *backlog) state() (commits, behind int, changed <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.commits), len(b.behind), b.wait()
}

// stop empties the backlog and makes add fail. written returns what it did before.
func (b *backlog) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.metrics.backlogBytes.Sub(float64(b.bytes))
	b.metrics.behind.Sub(float64(len(b.behind)))
	b.bytes, b.commits, b.stopped = 0, nil, true
	b.notify()
}
