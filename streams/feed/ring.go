package feed

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Ring has the newest entries of a hub's log or of an organization's feed, once for all readers in
// this process. It is bounded in entries and, together with the other rings of its budget, in
// bytes: the oldest entries are cut. Entries are numbered from 0 on.
//
// Its mutex guards what the owner keeps beside the entries, too. The caller of a method must hold
// it, unless the method says that it takes it.
type Ring[E any] struct {
	sync.Mutex
	budget *RingBudget
	limit  int
	size   func(*E) int64
	onCut  func(*E)

	// entries are numbered from base on. Readers keep slices of entries, so elements never change:
	// it grows at the end, is cut at the front, and is copied when cut, the number of elements cut
	// since the last copy, gets large.
	entries []E
	base    uint64
	cut     int
	bytes   int64

	// err ends the readers.
	err error
	// changed is closed when readers are woken, if waited is set: a reader may wait on it.
	changed chan struct{}
	waited  bool
	readers int
	// idle is when the last reader left.
	idle time.Time
}

// Init makes the ring ready. size returns about how much memory an entry takes, and onCut is called
// for each entry before it is cut. End must be called at the ring's end.
func (r *Ring[E]) Init(budget *RingBudget, limit int, size func(*E) int64, onCut func(*E)) {
	r.budget, r.limit, r.size, r.onCut = budget, limit, size, onCut
	r.changed = make(chan struct{})
	budget.rings.Add(1)
}

// Push appends an entry, and cuts the oldest ones if there are too many.
func (r *Ring[E]) Push(e E) {
	r.entries = append(r.entries, e)
	r.count(r.size(&e))
	r.trim()
}

func (r *Ring[E]) count(bytes int64) {
	r.bytes += bytes
	r.budget.used.Add(bytes)
}

func (r *Ring[E]) trim() {
	n, bytes := 0, r.bytes
	for n < len(r.entries) && (len(r.entries)-n > r.limit || r.budget.mustTrim(bytes)) {
		bytes -= r.size(&r.entries[n])
		r.count(-r.size(&r.entries[n]))
		r.onCut(&r.entries[n])
		n++
	}
	r.drop(n)
}

// Clear cuts all entries.
func (r *Ring[E]) Clear() {
	for i := range r.entries {
		r.onCut(&r.entries[i])
	}
	r.count(-r.bytes)
	r.drop(len(r.entries))
}

func (r *Ring[E]) drop(n int) {
	r.entries, r.base, r.cut = r.entries[n:], r.base+uint64(n), r.cut+n
	if r.cut > len(r.entries)/2+16 {
		// The array under the slice still holds the entries that were cut.
		r.entries = append(make([]E, 0, len(r.entries)+len(r.entries)/2+16), r.entries...)
		r.cut = 0
	}
}

// TrimToBudget trims the ring after other rings have grown. It takes the mutex.
func (r *Ring[E]) TrimToBudget() {
	r.Lock()
	defer r.Unlock()
	r.trim()
}

// Entries returns all entries, which the caller must not change, and the number of the first.
func (r *Ring[E]) Entries() (entries []E, base uint64) { return slices.Clip(r.entries), r.base }

// Next returns the number of the entry that is pushed next.
func (r *Ring[E]) Next() uint64 { return r.base + uint64(len(r.entries)) }

// From returns the entries from a number on. ok is false if the ring no longer has the first.
func (r *Ring[E]) From(number uint64) (entries []E, ok bool) {
	if number < r.base {
		return nil, false
	}
	return slices.Clip(r.entries[number-r.base:]), true
}

// End cuts all entries and ends the readers with err. It returns false if the ring has ended
// before.
func (r *Ring[E]) End(err error) bool {
	if r.err != nil {
		return false
	}
	r.err = err
	r.Clear()
	r.budget.rings.Add(-1)
	r.Wake()
	return true
}

// Err returns the error that ends the readers, nil until then.
func (r *Ring[E]) Err() error { return r.err }

// Wait returns a channel that is closed by Wake; it is closed already if there is more to read or
// the ring has ended.
func (r *Ring[E]) Wait(more bool) <-chan struct{} {
	if more || r.err != nil {
		return closed
	}
	r.waited = true
	return r.changed
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// IsAwaited reports whether a reader may wait.
func (r *Ring[E]) IsAwaited() bool { return r.waited }

// Wake wakes the readers.
func (r *Ring[E]) Wake() {
	if r.waited {
		close(r.changed)
		r.changed, r.waited = make(chan struct{}), false
	}
}

// Attach counts a reader until Detach. Both take the mutex.
func (r *Ring[E]) Attach() {
	r.Lock()
	defer r.Unlock()
	r.readers++
}

// HasReaders reports whether a reader is attached.
func (r *Ring[E]) HasReaders() bool { return r.readers > 0 }

// Detach ends the counting of a reader.
func (r *Ring[E]) Detach() {
	r.Lock()
	defer r.Unlock()
	if r.readers--; r.readers == 0 {
		r.idle = time.Now()
	}
}

// IdleSince reports whether the ring has had no reader since before. It takes the mutex.
func (r *Ring[E]) IdleSince(before time.Time) bool {
	r.Lock()
	defer r.Unlock()
	return r.readers == 0 && r.idle.Before(before)
}

// RingBudget bounds the bytes of all rings together.
type RingBudget struct {
	limit       int64
	used, rings atomic.Int64
}

// mustTrim reports whether a ring of that size must be trimmed: all rings together are over the
// limit, and this one is over its equal share.
func (b *RingBudget) mustTrim(bytes int64) bool {
	return b.used.Load() > b.limit && bytes > b.limit/max(b.rings.Load(), 1)
}

// RingBudget returns the budget of the rings, which Config.RingBytes sets.
func (l *Logs) RingBudget() *RingBudget { return &l.rings }
