package feed

import (
	"context"
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
// tail_read.go (reading) and check.go (the comparison with the journal).
type tail struct {
	// Ring has every event from sequence ringFrom to end. Its mutex guards the fields below opened.
	Ring[domain.EncodedEvent]
	shard *shard
	hub   domain.HubID
	epoch domain.Epoch

	// opened is closed once the fields below are set, or openErr is.
	opened  chan struct{}
	openErr error

	ringFrom uint64
	// end is the last sequence that readers see. started reports whether it is known.
	end     uint64
	started bool
	// known is the last check, and checked is when the last one began.
	known   endCheck
	checked time.Time

	// life ends with the tail, and with it the reads of history that its readers are in: they would
	// wait for a broker that is cut off. It is a field because no caller's context lasts as long.
	life    context.Context
	endLife context.CancelFunc
}

func newTail(s *shard, hub domain.HubID, epoch domain.Epoch) *tail {
	t := &tail{shard: s, hub: hub, epoch: epoch, opened: make(chan struct{})}
	t.Init(
		&s.logs.rings, s.logs.cfg.RingEvents,
		func(e *domain.EncodedEvent) int64 { return eventBytes(*e) },
		func(e *domain.EncodedEvent) { t.ringFrom = e.Seq + 1 },
	)
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
	t.Lock()
	defer t.Unlock()
	if !t.started {
		t.ringFrom, t.end, t.started = last+1, last, true
	}
	t.known, t.checked = endCheck{last, now}, time.Now()
	t.Wake()
}

// fail ends the tail and its readers. Only the first error counts.
func (t *tail) fail(err error) {
	t.Lock()
	defer t.Unlock()
	if t.End(err) {
		t.endLife()
		t.ringFrom = t.end + 1
	}
}

// restart empties the ring, which continues at a sequence. The caller must hold the mutex.
func (t *tail) restart(seq uint64) {
	t.Clear()
	t.ringFrom = seq
}

// push appends a received event to the ring. encoded is nil unless the event is encoded already.
// The caller must hold the mutex.
func (t *tail) push(m stored, encoded *domain.EncodedEvent) {
	if encoded == nil {
		e, err := m.encode()
		if err != nil {
			t.shard.logs.cfg.Logger.Error(
				"event in hub log unreadable", "hub_id", t.hub, "error", err,
			)
			return
		}
		encoded = &e
	}
	t.Push(*encoded)
}

func (t *tail) attach() {
	t.Attach()
	t.shard.logs.metrics.readers.Inc()
}

func (t *tail) detach() {
	t.Detach()
	t.shard.logs.metrics.readers.Dec()
}
