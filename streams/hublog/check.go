package hublog

import (
	"context"
	"fmt"
	"time"
)

const (
	// feedPatience is how long a check waits for what the stream has and the feed has not brought
	// yet, before it takes it for lost.
	feedPatience = 150 * time.Millisecond
	// checkTimeout bounds one check. In a cluster that lost a server it takes some seconds until a
	// stream has a leader to ask.
	checkTimeout = readPatience
)

// check is one comparison of a tail with its stream.
type check struct {
	// done is closed when the rest is set.
	done chan struct{}
	// first and last are the stream's bounds, with the tail's end at last or beyond. at is from
	// before the stream was asked: every message behind last was stored later.
	bounds
	at  time.Time
	err error
}

// checks has at most one check of a tail under way and one waiting, which all share who asked since
// the former began.
type checks struct {
	running, next *check
	// began is when the last one began, for the sweep.
	began time.Time
}

// check compares the tail with its stream, in a check that begins after the call. Afterwards
// readers see everything that was stored before it. The errors are those of the broker, of the
// tail, and of ctx.
func (t *tail) check(ctx context.Context) (*check, error) {
	c := t.checkSoon(true)
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

// checkSoon has a check begin. With another under way, that one is enough unless a later one is
// asked for.
func (t *tail) checkSoon(later bool) *check {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &t.checks
	if c.running == nil {
		c.running = &check{done: make(chan struct{})}
		t.shard.logs.work(t.runChecks)
		return c.running
	}
	if !later {
		return c.running
	}
	if c.next == nil {
		c.next = &check{done: make(chan struct{})}
	}
	return c.next
}

// due reports whether the tail has readers, the last check began before then, and none is under
// way.
func (t *tail) due(then time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err == nil && t.readers > 0 && t.checks.running == nil && t.checks.began.Before(then)
}

// runChecks runs the check that is due, and those asked for meanwhile.
func (t *tail) runChecks(ctx context.Context) {
	for {
		t.mu.Lock()
		c := t.checks.running
		t.checks.began = time.Now()
		fed, end := t.fed, t.end
		t.mu.Unlock()
		within, cancel := context.WithTimeout(ctx, checkTimeout)
		t.runCheck(within, c, fed, end)
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

// runCheck asks the stream, of which fed had been announced and end shown before.
func (t *tail) runCheck(ctx context.Context, c *check, fed, end uint64) {
	logs := t.shard.logs
	c.at = logs.cfg.Now()
	if c.bounds, c.err = logs.bounds(ctx, t.hub, t.known(end)); c.err != nil {
		return
	}
	c.first, c.last = max(c.first, t.epoch.After+1), max(c.last, t.epoch.After)
	switch {
	case c.last < end:
		// The stream has lost what readers have seen, such as by a power cut without syncing.
		// Nobody can go on from there. In a cluster, the leader has confirmed it: a stale answer
		// would end every reader of a log that is whole.
		logs.cfg.Log.Error(
			"hub log is shorter than it was", "hub_id", t.hub, "was", end, "is", c.last,
		)
		t.shard.end(t, ErrLogEnded)
		c.err = ErrLogEnded
		return
	case c.last < fed:
		// Announced and never stored: the broker ended in the midst of a batch. From a stale answer
		// this would only have the events read from the log once the next check finds them there.
		t.retract(c.last)
	}
	if !t.caughtUp(ctx, c.last) {
		if c.err = logs.settle(ctx, t.hub); c.err != nil {
			return
		}
		t.skipTo(c.last)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.err = t.err; c.err == nil {
		t.seen, t.seenAt = c.last, c.at
	}
}

// known returns the sequence that the stream is known to have had, 0 for none: what lies before the
// log is not known from it.
func (t *tail) known(end uint64) uint64 {
	if end <= t.epoch.After {
		return 0
	}
	return end
}

// caughtUp gives the feed a moment to bring everything up to last, and reports whether it has.
func (t *tail) caughtUp(ctx context.Context, last uint64) bool {
	patience := time.NewTimer(feedPatience)
	defer patience.Stop()
	for {
		changed, there := t.reached(last)
		if there {
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

// reached reports whether readers see everything up to last, or nothing any more; otherwise there
// is a channel to wait on.
func (t *tail) reached(last uint64) (<-chan struct{}, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end >= last || t.err != nil {
		return nil, true
	}
	t.waited = true
	return t.changed, false
}

// skipTo takes everything up to last, which is on disk, as seen. What the feed has not brought of
// it is read from the log.
func (t *tail) skipTo(last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forsake()
	if t.fed < last {
		t.shard.logs.metrics.feedGaps.Inc()
		t.restart(last + 1)
		t.fed = last
	}
	t.safe = max(t.safe, last)
	if t.advance() {
		t.wakeLocked()
	}
}

// retract forgets what was announced behind last and never shown.
func (t *tail) retract(last uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end <= last && t.fed > last {
		t.cutBehindEnd(last + 1)
	}
}
