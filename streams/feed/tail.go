package feed

import (
	"context"
	"sync"
	"time"

	"hubcloud/domain"
)

// tail is the end of one log, shared by all its readers in this process.
//
//	sequences:  … | ringFrom … end
//	              |  ring
//	   in the stream and the journal only
//
// Its methods are in tail.go (opening and closing, readers), tail_receive.go (new records),
// tail_ring.go (the ring), tail_read.go (reading) and check.go (the comparison with the journal).
type tail struct {
	shard *shard
	hub   domain.HubID
	epoch domain.Epoch

	// opened is closed once the fields below are set, or openErr is.
	opened  chan struct{}
	openErr error

	mu sync.Mutex
	// err ends the readers.
	err error
	// ring holds every event from sequence ringFrom to end. Readers keep slices of the ring, so its
	// elements never change: it grows at the end, is cut at the front, and is copied when cut, the
	// number of elements cut since the last copy, gets large.
	ring     []domain.EncodedEvent
	ringFrom uint64
	cut      int
	bytes    int64
	// end is the last sequence that readers see. started reports whether it is known.
	end     uint64
	started bool
	// checkedEnd is where the log ended at the time checkedAt.
	checkedEnd uint64
	checkedAt  time.Time

	// changed is closed when end moves or err is set, if waited is set: a reader may wait on it.
	changed chan struct{}
	waited  bool

	// life ends with the tail, and with it the reads of history that its readers are in: they would
	// wait for a broker that is cut off. It is a field because no caller's context lasts as long.
	life    context.Context
	endLife context.CancelFunc

	readers int
	// idle is when the last reader left.
	idle time.Time

	checks checks
}

func newTail(s *shard, hub domain.HubID, epoch domain.Epoch) *tail {
	t := &tail{
		shard:   s,
		hub:     hub,
		epoch:   epoch,
		opened:  make(chan struct{}),
		changed: make(chan struct{}),
	}
	t.life, t.endLife = context.WithCancel(context.Background())
	return t
}

// open reads the log's end. The tail receives the commits since it was added to its shard, so it
// gets everything after that end.
func (t *tail) open(ctx context.Context) {
	now := t.shard.logs.cfg.Now()
	// The first check, or the next commit, corrects a stale end.
	last, _, err := t.shard.logs.end(ctx, t.hub)
	if err == nil {
		t.start(max(last, t.epoch.After), now)
	} else {
		t.openErr = err
		t.shard.remove(t, err)
	}
	close(t.opened)
}

// start sets the end that the log had at the time now. The tail may have received more since.
func (t *tail) start(last uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.started {
		t.ringFrom, t.end, t.started = last+1, last, true
	}
	t.checkedEnd, t.checkedAt = last, now
	t.wakeLocked()
}

// fail ends the tail and its readers. Only the first error counts.
func (t *tail) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	t.err = err
	t.endLife()
	t.restart(t.end + 1)
	t.wakeLocked()
}

func (t *tail) attach() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers++
	t.shard.logs.metrics.readers.Inc()
}

func (t *tail) detach(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers--
	t.shard.logs.metrics.readers.Dec()
	if t.readers == 0 {
		t.idle = now
	}
}

// idleSince reports whether the tail has had no reader since before.
func (t *tail) idleSince(before time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readers == 0 && t.idle.Before(before)
}

func (t *tail) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked()
}

// wakeLocked wakes the readers. The caller must hold t.mu.
func (t *tail) wakeLocked() {
	if t.waited {
		close(t.changed)
		t.changed, t.waited = make(chan struct{}), false
	}
}
