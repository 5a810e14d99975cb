package feed

import "sync/atomic"

// RingBudget bounds the bytes of all rings of newest events together: those of the tails, and those
// of other readers of the logs. A ring reports its opening, its end and what it holds, and trims
// itself when MustTrim tells it to.
type RingBudget struct {
	limit int64
	used  atomic.Int64
	tails atomic.Int64
}

// RingBudget returns the budget of the rings, which Config.RingBytes sets.
func (l *Logs) RingBudget() *RingBudget { return &l.rings }

// Open counts a ring. Close must be called at the ring's end, after its bytes were subtracted.
func (b *RingBudget) Open() { b.tails.Add(1) }

// Close ends the counting of a ring.
func (b *RingBudget) Close() { b.tails.Add(-1) }

// Add counts bytes that a ring holds more or, if n is negative, less.
func (b *RingBudget) Add(n int64) { b.used.Add(n) }

// MustTrim reports whether a ring of that size must be trimmed: all rings together are over the
// limit, and this one is over its equal share.
func (b *RingBudget) MustTrim(bytes int64) bool {
	return b.used.Load() > b.limit && bytes > b.limit/max(b.tails.Load(), 1)
}
