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
	// Ring has every event from sequence ringFrom to end. Its mutex guards the fields below epoch.
	Ring[domain.EncodedEvent]
	shard *shard
	hub   domain.HubID
	epoch domain.Epoch

	ringFrom uint64
	// end is the last sequence that readers see.
	end uint64
	// known is the last check, and checked is when the last one began.
	known   endCheck
	checked time.Time

	// life ends with the tail, and with it the reads of history that its readers are in: they would
	// wait for a broker that is cut off. It is a field because no caller's context lasts as long.
	life    context.Context
	endLife context.CancelFunc
}

// newTail returns a tail that begins with the end of the log, as this process knows it.
func newTail(s *shard, hub domain.HubID, epoch domain.Epoch) *tail {
	tip, _ := s.logs.cfg.Journal.Tip(hub)
	last := max(tip.Seq, epoch.After)
	t := &tail{
		shard: s, hub: hub, epoch: epoch, ringFrom: last + 1, end: last,
		known: endCheck{last, tip.Time}, checked: time.Now(),
	}
	t.Init(
		&s.logs.rings, s.logs.cfg.RingEvents,
		func(e *domain.EncodedEvent) int64 { return eventBytes(*e) },
		func(e *domain.EncodedEvent) { t.ringFrom = e.Seq + 1 },
	)
	t.life, t.endLife = context.WithCancel(context.Background())
	return t
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
