package feed

import (
	"context"
	"slices"
	"sort"

	"hubcloud/domain"
)

// batch is the result of reading a tail after a sequence.
type batch struct {
	// events are those that fit; left is the space that remains.
	events []domain.EncodedEvent
	left   space
	// next is the sequence to read after next: no event lies between the last of events and next.
	next uint64
	// streamTo is 0 if the events are from the ring. Otherwise the reader has fallen behind the
	// ring, and must read from the stream or the journal, up to the sequence streamTo.
	streamTo uint64
}

// inRing returns the ring's events after pos that fit into wanted, or sets streamTo if the ring
// does not have the next one. With atLeastOne the first event is returned whatever its size.
func (t *tail) inRing(pos uint64, wanted space, atLeastOne bool) (batch, error) {
	t.Lock()
	defer t.Unlock()
	switch {
	case t.err != nil:
		return batch{}, t.err
	case pos >= t.end:
		return batch{next: pos, left: wanted}, nil
	case pos+1 < t.ringFrom:
		return batch{next: pos, left: wanted, streamTo: min(t.ringFrom-1, t.end)}, nil
	}
	following, _ := t.Entries()
	following = following[sort.Search(len(following), func(i int) bool {
		return following[i].Seq > pos
	}):]
	events, left := wanted.fit(following, atLeastOne)
	// Clipped, because an append by the caller must not change the ring.
	b := batch{events: slices.Clip(events), left: left}
	switch len(events) {
	case len(following):
		b.next = t.end
	case 0:
		b.next = pos
	default:
		b.next = events[len(events)-1].Seq
	}
	return b, nil
}

// read returns the events after pos that fit into wanted, from the stream where the ring does not
// have them. With atLeastOne the first event is returned whatever its size. The error is a
// *goneError when the next event has expired.
func (t *tail) read(ctx context.Context, pos uint64, wanted space, atLeastOne bool) (batch, error) {
	b, err := t.inRing(pos, wanted, atLeastOne)
	if err != nil || b.streamTo == 0 {
		return b, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()
	b.events, b.next, b.left, err = t.shard.logs.history(
		ctx, logEpoch{t.hub, t.epoch}, pos+1, b.streamTo, wanted, atLeastOne,
	)
	if err != nil && t.life.Err() != nil {
		t.Lock()
		defer t.Unlock()
		err = t.err
	}
	return b, err
}

// first returns the first sequence of the log that has not expired, one beyond its end if all have.
func (t *tail) first(ctx context.Context) (uint64, error) {
	b, err := t.shard.logs.bounds(ctx, t.hub)
	return max(b.first, t.epoch.After+1), err
}

// wait returns a channel that is closed when the log reaches beyond pos or the tail has ended.
func (t *tail) wait(pos uint64) <-chan struct{} {
	t.Lock()
	defer t.Unlock()
	return t.Wait(pos < t.end)
}

// lastCheck returns the last check.
func (t *tail) lastCheck() endCheck {
	t.Lock()
	defer t.Unlock()
	return t.known
}

// reaches reports whether readers see the log up to seq.
func (t *tail) reaches(seq uint64) bool {
	t.Lock()
	defer t.Unlock()
	return seq <= t.end
}

// ringHolds reports whether the ring has every event after pos.
func (t *tail) ringHolds(pos uint64) bool {
	t.Lock()
	defer t.Unlock()
	return pos+1 >= t.ringFrom
}
