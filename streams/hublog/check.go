package hublog

import (
	"context"
	"fmt"
	"time"
)

const (
	// feedPatience is how long a check waits for messages that the stream has and the feed has not
	// brought yet. Then it treats them as lost by the feed.
	feedPatience = 150 * time.Millisecond
	// checkTimeout bounds one check. In a cluster that lost a server, a stream may be without a
	// leader for some seconds.
	checkTimeout = readPatience
)

// streamCheck is a comparison of a tail with its stream.
type streamCheck struct {
	// done is closed when the other fields are set.
	done chan struct{}
	// bounds are the stream's; the tail's end is at last or beyond. at is before the stream was
	// asked, so every message after last was stored at or after it.
	bounds
	at  time.Time
	err error
}

// checks are a tail's checks: at most one is running and one waiting. Callers share the waiting
// one.
type checks struct {
	running, next *streamCheck
	// began is when the last check began.
	began time.Time
}

// check compares the tail with its stream, in a check that begins after the call. Afterwards
// readers see everything that was stored before the call. Errors are those of the broker, the tail
// and ctx.
func (t *tail) check(ctx context.Context) (*streamCheck, error) {
	c := t.startOrQueueCheck()
	select {
	case <-c.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.shard.logs.ctx.Done():
		return nil, ErrClosed
	}
	if c.err != nil {
		return nil, fmt.Errorf("check the end of the log of %s: %w", t.hub, c.err)
	}
	return c, nil
}

// startCheck starts a check unless one is running.
func (t *tail) startCheck() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.checks.running == nil {
		t.launchCheck()
	}
}

// startOrQueueCheck returns a check that begins after the call: a new one or, while one is running,
// the next one.
func (t *tail) startOrQueueCheck() *streamCheck {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.checks.running == nil {
		return t.launchCheck()
	}
	if t.checks.next == nil {
		t.checks.next = newStreamCheck()
	}
	return t.checks.next
}

// launchCheck starts a check, while none is running. The caller must hold t.mu.
func (t *tail) launchCheck() *streamCheck {
	c := newStreamCheck()
	t.checks.running = c
	t.shard.logs.work(t.runChecks)
	return c
}

func newStreamCheck() *streamCheck { return &streamCheck{done: make(chan struct{})} }

// checkDue reports whether the tail has readers, its last check began before then, and no check is
// running.
func (t *tail) checkDue(then time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil && t.readers > 0 && t.checks.running == nil && t.checks.began.Before(then)
}

// forceCheck makes a check of the tail due now.
func (t *tail) forceCheck() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.checks.began = time.Time{}
}

// runChecks runs the current check, and then those that were waiting.
func (t *tail) runChecks(ctx context.Context) {
	for {
		t.mu.Lock()
		c := t.checks.running
		t.checks.began = time.Now()
		received, end := t.received, t.end
		t.mu.Unlock()
		checkCtx, cancel := context.WithTimeout(ctx, checkTimeout)
		t.runCheck(checkCtx, c, received, end)
		cancel()
		close(c.done)
		t.mu.Lock()
		c = t.checks.next
		t.checks.running, t.checks.next = c, nil
		t.mu.Unlock()
		if c == nil {
			return
		}
	}
}

// runCheck compares the stream with the tail before the check: received is the last sequence that
// the tail had received, end the last that readers could see.
func (t *tail) runCheck(ctx context.Context, c *streamCheck, received, end uint64) {
	logs := t.shard.logs
	c.at = logs.cfg.Now()
	if c.bounds, c.err = logs.bounds(ctx, t.hub, t.known(end)); c.err != nil {
		return
	}
	c.first, c.last = max(c.first, t.epoch.After+1), max(c.last, t.epoch.After)
	switch {
	case c.last < end:
		// The stream has lost events that readers have seen, for example by a power cut on a disk
		// that does not sync. Readers cannot continue. In a cluster the leader has confirmed the
		// loss: a stale answer would end the readers of an intact log.
		logs.cfg.Logger.Error(
			"hub log lost events", "hub_id", t.hub, "last_seen", end, "last_stored", c.last,
		)
		t.shard.remove(t, ErrEpochEnded)
		c.err = ErrEpochEnded
		return
	case c.last < received:
		// Published and never stored: the broker stopped in the middle of a batch. If the answer
		// was stale, the next check finds the events in the stream.
		t.retract(c.last)
	}
	if !t.caughtUp(ctx, c.last) {
		if c.err = logs.awaitDurable(ctx, t.hub); c.err != nil {
			return
		}
		t.skipTo(c.last)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.err = t.err; c.err == nil {
		t.checkedEnd, t.checkedAt = c.last, c.at
	}
}

// known returns a sequence that the stream is known to have reached, 0 for none: the end of a log
// without events is not one.
func (t *tail) known(end uint64) uint64 {
	if end <= t.epoch.After {
		return 0
	}
	return end
}

// caughtUp waits a moment for the feed to bring everything up to last, and reports whether it has.
func (t *tail) caughtUp(ctx context.Context, last uint64) bool {
	patience := time.NewTimer(feedPatience)
	defer patience.Stop()
	for {
		changed, ok := t.reached(last)
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-patience.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// reached reports whether readers see everything up to last or the tail has failed. Otherwise it
// returns a channel to wait on.
func (t *tail) reached(last uint64) (<-chan struct{}, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end >= last || t.err != nil {
		return nil, true
	}
	t.waited = true
	return t.changed, false
}

// skipTo moves the end to last, which is on disk. Readers read what the feed has not brought from
// the stream.
func (t *tail) skipTo(last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dropUnconfirmed()
	if t.received < last {
		t.shard.logs.metrics.feedGaps.Inc()
		t.restart(last + 1)
		t.received = last
	}
	t.durable = max(t.durable, last)
	if t.advance() {
		t.wakeLocked()
	}
}

// retract drops what was received after last and has not been visible.
func (t *tail) retract(last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end <= last && t.received > last {
		t.cutFrom(last + 1)
	}
}
