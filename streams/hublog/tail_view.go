package hublog

import (
	"context"
	"sort"
	"time"

	"hubcloud/domain"
)

// view is the result of reading a tail after a sequence.
type view struct {
	// events are from the ring, as many as fit; left is the space after them.
	events []domain.EncodedEvent
	left   space
	// next is the sequence to read after next: no event lies between the last of events and next.
	next uint64
	// logTo, unless it is 0, is the last sequence that is in the stream and no longer in the ring.
	logTo uint64
}

// view returns the ring's events after pos that fit into left, or logTo if the ring does not have
// the next one. With atLeastOne the first event is returned whatever its size.
func (t *tail) view(pos uint64, left space, atLeastOne bool) (view, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.err != nil:
		return view{}, t.err
	case pos >= t.end:
		return view{next: pos, left: left}, nil
	case pos+1 < t.ringFrom:
		return view{next: pos, left: left, logTo: min(t.ringFrom-1, t.end)}, nil
	}
	from := sort.Search(t.visible, func(i int) bool { return t.ring[i].Seq > pos })
	v := view{next: t.end}
	v.events, v.left = left.fit(t.ring[from:t.visible], atLeastOne)
	v.events = v.events[:len(v.events):len(v.events)]
	switch to := from + len(v.events); {
	case to == t.visible:
	case to > from:
		v.next = t.ring[to-1].Seq
	default:
		v.next = pos
	}
	return v, nil
}

// read returns the events after pos that fit into left, from the stream where the ring does not
// have them. With atLeastOne the first event is returned whatever its size. The error is a
// *goneError when the next event has expired.
func (t *tail) read(ctx context.Context, pos uint64, left space, atLeastOne bool) (view, error) {
	v, err := t.view(pos, left, atLeastOne)
	if err != nil || v.logTo == 0 {
		return v, err
	}
	v.events, v.next, v.left, err = t.shard.logs.history.read(
		ctx, t, pos+1, v.logTo, left, atLeastOne,
	)
	return v, err
}

// wait returns a channel that is closed when the log reaches beyond pos or the tail has ended.
func (t *tail) wait(pos uint64) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil || pos < t.end {
		return closed
	}
	t.waited = true
	return t.changed
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// lastCheck returns where the stream ended at the last check, and the time of the check.
func (t *tail) lastCheck() (end uint64, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.checkedEnd, t.checkedAt
}

// reaches reports whether readers see the log up to seq.
func (t *tail) reaches(seq uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return seq <= t.end
}

// ringHolds reports whether the ring has every event after pos.
func (t *tail) ringHolds(pos uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return pos+1 >= t.ringFrom
}
