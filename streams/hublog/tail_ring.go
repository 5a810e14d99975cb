package hublog

import (
	"sync/atomic"

	"hubcloud/domain"
)

// ringBudget bounds the bytes of all rings together.
type ringBudget struct {
	limit int64
	used  atomic.Int64
	tails atomic.Int64
}

// mustTrim reports whether a ring of that size must be trimmed: all rings together are over the
// limit, and this one is over its equal share.
func (b *ringBudget) mustTrim(bytes int64) bool {
	return b.used.Load() > b.limit && bytes > b.limit/max(b.tails.Load(), 1)
}

// push appends a received event to the ring. The caller must hold t.mu.
func (t *tail) push(m stored) {
	logs := t.shard.logs
	e, err := m.encode()
	if err != nil {
		logs.cfg.Logger.Error("event in hub log unreadable", "hub_id", t.hub, "error", err)
		return
	}
	t.ring = append(t.ring, e)
	t.bytes += eventBytes(e)
	logs.rings.used.Add(eventBytes(e))
	t.trim()
}

// trim cuts the oldest events until the ring is within its bounds. The caller must hold t.mu.
func (t *tail) trim() {
	logs := t.shard.logs
	for len(t.ring) > logs.cfg.RingEvents || len(t.ring) > 0 && logs.rings.mustTrim(t.bytes) {
		oldest := t.ring[0]
		t.ringFrom = oldest.Seq + 1
		t.bytes -= eventBytes(oldest)
		logs.rings.used.Add(-eventBytes(oldest))
		t.ring = t.ring[1:]
		t.cut++
	}
	if t.cut > len(t.ring)/2+16 {
		// The array under the ring still holds the events that were cut.
		t.ring = append(make([]domain.EncodedEvent, 0, len(t.ring)+len(t.ring)/2+16), t.ring...)
		t.cut = 0
	}
}

// restart empties the ring, which continues at a sequence. The caller must hold t.mu.
func (t *tail) restart(seq uint64) {
	t.shard.logs.rings.used.Add(-t.bytes)
	t.ring, t.cut, t.bytes = nil, 0, 0
	t.ringFrom = seq
}

// trimToBudget trims the ring after other rings have grown.
func (t *tail) trimToBudget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
}
