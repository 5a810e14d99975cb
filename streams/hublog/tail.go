package hublog

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

// tail is the end of one log, shared by all its readers in this process.
//
//	sequences:  … | ringFrom … end | … received
//	              |  ring: visible | not yet durable
//	   in the stream only
//
// Its methods are in tail.go (opening and closing, readers), tail_feed.go (messages of the feed,
// appends), tail_ring.go (the ring), tail_view.go (reading) and check.go (the comparison with the
// stream).
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
	sub *nats.Subscription
	// ring holds every event from sequence ringFrom to received. Readers may read ring[:visible];
	// the rest is not durable yet. Readers keep slices of the ring, so its elements never change:
	// it grows at the end, is cut at the front, and is copied when cut, the number of elements cut
	// since the last copy, gets large.
	ring     []domain.EncodedEvent
	ringFrom uint64
	visible  int
	cut      int
	bytes    int64
	// received is the last sequence received from the feed, without a gap since ringFrom; 0 before
	// the first.
	received uint64
	// durable is the last sequence that is known to be on disk.
	durable uint64
	// end is the last sequence that readers see: the lesser of received and durable.
	end uint64
	// reconnects is the number of reconnections of the feed when the first message after end was
	// received.
	reconnects uint64
	// checkedEnd is where the stream ended at the time checkedAt.
	checkedEnd uint64
	checkedAt  time.Time

	// changed is closed when end moves or err is set, if waited is set: a reader may wait on it.
	changed chan struct{}
	waited  bool

	readers int
	// idle is when the last reader left.
	idle time.Time
	// grouped are the readers that belong to a Group; nil while there are none.
	grouped map[*Reader]struct{}

	// appends is the number of appends of this process under way.
	appends int
	// confirming reports whether a request of confirmSoon is under way.
	confirming bool

	checks checks
}

func newTail(s *shard, hub domain.HubID, epoch domain.Epoch) *tail {
	return &tail{
		shard:   s,
		hub:     hub,
		epoch:   epoch,
		opened:  make(chan struct{}),
		changed: make(chan struct{}),
	}
}

// open subscribes to the feed and then asks for the stream's end. The broker handles both in this
// order, so the feed brings everything after that end.
func (t *tail) open(ctx context.Context) {
	err := t.subscribe()
	var b bounds
	now := t.shard.logs.cfg.Now()
	if err == nil {
		// The first check, or the feed, corrects a stale end.
		b, err = t.shard.logs.bounds(ctx, t.hub, 0)
	}
	if err == nil && b.last > 0 {
		err = t.shard.logs.awaitDurable(ctx, t.hub)
	}
	if err == nil {
		t.start(max(b.last, t.epoch.After), now)
	} else {
		t.openErr = err
		t.shard.remove(t, err)
	}
	close(t.opened)
}

func (t *tail) subscribe() error {
	sub, err := t.shard.nc.ChanSubscribe(streams.FeedDestination(t.hub), t.shard.feed)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return sub.Unsubscribe()
	}
	t.sub = sub
	return nil
}

// start sets the end that the stream had at the time now. The feed may have brought more since.
func (t *tail) start(last uint64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.received == 0 {
		t.ringFrom, t.received = last+1, last
	}
	t.durable = max(t.durable, last)
	t.checkedEnd, t.checkedAt = last, now
	t.advance()
	t.wakeLocked()
}

// fail ends the tail and its readers. Only the first error counts.
func (t *tail) fail(err error) {
	t.mu.Lock()
	if t.err != nil {
		t.mu.Unlock()
		return
	}
	t.err = err
	t.restart(t.received + 1)
	sub := t.sub
	t.sub = nil
	t.wakeLocked()
	t.mu.Unlock()
	if sub != nil {
		streams.Unsubscribe(sub)
	}
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

// addGrouped makes the tail wake the reader's group.
func (t *tail) addGrouped(r *Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.grouped == nil {
		t.grouped = map[*Reader]struct{}{}
	}
	t.grouped[r] = struct{}{}
}

// removeGrouped undoes addGrouped.
func (t *tail) removeGrouped(r *Reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.grouped, r)
}

func (t *tail) wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wakeLocked()
}

// wakeLocked wakes the readers and their groups. The caller must hold t.mu.
func (t *tail) wakeLocked() {
	if t.waited {
		close(t.changed)
		t.changed, t.waited = make(chan struct{}), false
	}
	for r := range t.grouped {
		r.group.enqueue(r)
	}
}
