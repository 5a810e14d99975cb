package hublog

import "hubcloud/streams/journal"

// receive adds the next records of the log, which are durable, and reports whether readers see more
// now. ErrEpochEnded means that a record belongs to a newer epoch.
func (t *tail) receive(records []journal.Record) (changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range records {
		m := storedRecord(&records[i])
		if t.err != nil || m.seq <= t.end || m.seq <= t.epoch.After {
			continue
		}
		if m.event && m.epoch != t.epoch.At(m.seq) {
			return changed, ErrEpochEnded
		}
		if m.seq != t.end+1 {
			// There is a gap before the record, or it is the first one.
			if t.started {
				t.shard.logs.metrics.gaps.Inc()
			}
			t.restart(m.seq)
		}
		t.started = true
		t.end = m.seq
		if m.event {
			t.push(m)
		}
		changed = true
	}
	return changed, nil
}

// skipTo moves the end to last. Readers read what was not received from the stream or the journal.
func (t *tail) skipTo(last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end >= last {
		return
	}
	t.shard.logs.metrics.gaps.Inc()
	t.restart(last + 1)
	t.end = last
	t.wakeLocked()
}
