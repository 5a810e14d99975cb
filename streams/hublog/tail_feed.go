package hublog

import "context"

// receive adds the next message of the feed and reports whether readers see more now. ErrEpochEnded
// means that the message belongs to a newer epoch.
func (t *tail) receive(m stored) (changed bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropUnconfirmed()
	if t.err != nil || m.seq <= t.end || m.seq <= t.epoch.After {
		return false, nil
	}
	if m.event && m.epoch != t.epoch.At(m.seq) {
		return false, ErrEpochEnded
	}
	if m.seq <= t.received {
		// Published a second time: the former message at this sequence was never stored.
		t.cutFrom(m.seq)
	}
	if m.seq != t.received+1 {
		// There is a gap before the message, or it is the first one.
		if t.received != 0 {
			t.shard.logs.metrics.feedGaps.Inc()
		}
		t.restart(m.seq)
	}
	if t.received == t.end {
		t.reconnects = t.shard.reconnections()
	}
	t.received = m.seq
	// The broker publishes a single message, whose batchSeq is 0, once it is on disk, and the
	// messages of a batch before the batch is. It stores one batch after the other, so everything
	// before this batch is durable.
	t.durable = max(t.durable, m.seq-m.batchSeq)
	if m.event {
		t.push(m)
	}
	if m.batchCommit && m.seq > t.durable && t.appends == 0 {
		t.confirmSoon()
	}
	return t.advance(), nil
}

// dropUnconfirmed drops what was received before a reconnection and was not durable by then. A
// broker that was restarted in the middle of a batch may have given the same sequences to other
// messages. The caller must hold t.mu.
func (t *tail) dropUnconfirmed() {
	if t.received > t.end && t.reconnects != t.shard.reconnections() {
		t.cutFrom(t.end + 1)
	}
}

// advance moves end and reports whether it moved. The caller must hold t.mu.
func (t *tail) advance() bool {
	end := min(t.received, t.durable)
	if end <= t.end {
		return false
	}
	t.end = end
	for t.visible < len(t.ring) && t.ring[t.visible].Seq <= end {
		t.visible++
	}
	return true
}

// confirm records that everything up to last is durable.
func (t *tail) confirm(last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropUnconfirmed()
	t.durable = max(t.durable, last)
	if t.advance() {
		t.wakeLocked()
	}
}

func (t *tail) appendBegun() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appends++
}

func (t *tail) appendEnded() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.appends--
	if t.appends == 0 && t.received > t.durable {
		// No append of this process has confirmed what was received.
		t.confirmSoon()
	}
}

// confirmSoon starts a request that the broker answers once everything received so far is durable.
// The caller must hold t.mu.
func (t *tail) confirmSoon() {
	if t.confirming || t.err != nil {
		return
	}
	t.confirming = true
	upTo := t.received
	t.shard.logs.work(func(ctx context.Context) {
		err := t.shard.logs.awaitDurable(ctx, t.hub)
		t.mu.Lock()
		t.confirming = false
		if err == nil && t.received > upTo && t.appends == 0 {
			t.confirmSoon()
		}
		t.mu.Unlock()
		if err == nil {
			t.confirm(upTo)
		}
		// After an error the next check confirms what was received.
	})
}
