package feed

import (
	"hubcloud/domain"
	"hubcloud/streams/journal"
)

// receive adds the next records of the log, which are durable, and reports whether readers see more
// now. ErrEpochEnded means that a record belongs to a newer epoch.
//
// encoded has some of the records' events in the form that readers get, in the same order.
func (t *tail) receive(
	records []journal.Record, encoded []ReceivedEvent,
) (changed bool, err error) {
	t.Lock()
	defer t.Unlock()
	for i := range records {
		m := storedRecord(&records[i])
		var e *domain.EncodedEvent
		if len(encoded) > 0 && encoded[0].Record == &records[i] {
			e, encoded = &encoded[0].Event, encoded[1:]
		}
		if t.err != nil || m.seq <= t.end || m.seq <= t.epoch.After {
			continue
		}
		if m.event && m.epoch != t.epoch.At(m.seq) {
			return changed, ErrEpochEnded
		}
		if m.seq != t.end+1 {
			t.shard.logs.metrics.gaps.Inc()
			t.restart(m.seq)
		}
		t.end = m.seq
		if m.event {
			t.push(m, e)
		}
		changed = true
	}
	return changed, nil
}

// skipTo moves the end to last. Readers read what was not received from the stream or the journal.
func (t *tail) skipTo(last uint64) {
	t.Lock()
	defer t.Unlock()
	if t.end >= last {
		return
	}
	t.shard.logs.metrics.gaps.Inc()
	t.restart(last + 1)
	t.end = last
	t.Wake()
}
