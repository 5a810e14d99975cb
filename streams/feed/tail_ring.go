package feed

import "hubcloud/domain"

// push appends a received event to the ring. encoded is nil unless the event is encoded already.
// The caller must hold t.mu.
func (t *tail) push(m stored, encoded *domain.EncodedEvent) {
	logs := t.shard.logs
	if encoded == nil {
		e, err := m.encode()
		if err != nil {
			logs.cfg.Logger.Error("event in hub log unreadable", "hub_id", t.hub, "error", err)
			return
		}
		encoded = &e
	}
	t.ring = append(t.ring, *encoded)
	t.bytes += eventBytes(*encoded)
	logs.rings.Add(eventBytes(*encoded))
	t.trim()
}

// trim cuts the oldest events until the ring is within its bounds. The caller must hold t.mu.
func (t *tail) trim() {
	logs := t.shard.logs
	for len(t.ring) > logs.cfg.RingEvents || len(t.ring) > 0 && logs.rings.MustTrim(t.bytes) {
		oldest := t.ring[0]
		t.ringFrom = oldest.Seq + 1
		t.bytes -= eventBytes(oldest)
		logs.rings.Add(-eventBytes(oldest))
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
	t.shard.logs.rings.Add(-t.bytes)
	t.ring, t.cut, t.bytes = nil, 0, 0
	t.ringFrom = seq
}

// trimToBudget trims the ring after other rings have grown.
func (t *tail) trimToBudget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.trim()
}
