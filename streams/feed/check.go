package feed

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// checkTimeout bounds one check. In a cluster that lost a server, a journal may be without a
	// leader for some seconds.
	checkTimeout = readPatience
	// lossPatience is how long the journal must repeat that it ends before what readers have seen,
	// and lossPause the time between two requests.
	lossPatience = 4 * time.Second
	lossPause    = 250 * time.Millisecond
)

// endCheck is a comparison of a tail with the journal.
type endCheck struct {
	// done is closed when the other fields are set.
	done chan struct{}
	// last is where the log ends; the tail's end is at last or beyond. at is before the journal was
	// asked, so every record after last was stored at or after it.
	last uint64
	at   time.Time
	err  error
}

// checks are a tail's checks: at most one is running and one waiting. Callers share the waiting
// one.
type checks struct {
	running, next *endCheck
	// began is when the last check began.
	began time.Time
}

// check compares the tail with the journal, in a check that begins after the call. Afterwards
// readers see everything that was stored before the call. Errors are those of the broker, the tail
// and ctx.
func (t *tail) check(ctx context.Context) (*endCheck, error) {
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
	t.Lock()
	defer t.Unlock()
	if t.checks.running == nil {
		t.launchCheck()
	}
}

// startOrQueueCheck returns a check that begins after the call: a new one or, while one is running,
// the next one.
func (t *tail) startOrQueueCheck() *endCheck {
	t.Lock()
	defer t.Unlock()
	if t.checks.running == nil {
		return t.launchCheck()
	}
	if t.checks.next == nil {
		t.checks.next = newEndCheck()
	}
	return t.checks.next
}

// launchCheck starts a check, while none is running. The caller must hold the mutex.
func (t *tail) launchCheck() *endCheck {
	c := newEndCheck()
	t.checks.running = c
	t.shard.logs.work(t.runChecks)
	return c
}

func newEndCheck() *endCheck { return &endCheck{done: make(chan struct{})} }

// checkDue reports whether the tail has readers, its last check began before then, and no check is
// running.
func (t *tail) checkDue(then time.Time) bool {
	t.Lock()
	defer t.Unlock()
	return t.err == nil && t.readers > 0 && t.checks.running == nil && t.checks.began.Before(then)
}

// runChecks runs the current check, and then those that were waiting.
func (t *tail) runChecks(ctx context.Context) {
	for {
		t.Lock()
		c := t.checks.running
		t.checks.began = time.Now()
		end := t.end
		t.Unlock()
		checkCtx, cancel := context.WithTimeout(ctx, checkTimeout)
		t.runCheck(checkCtx, c, end)
		cancel()
		close(c.done)
		t.Lock()
		c = t.checks.next
		t.checks.running, t.checks.next = c, nil
		t.Unlock()
		if c == nil {
			return
		}
	}
}

// runCheck compares the journal with the tail. end is the last sequence that readers could see
// before the check.
func (t *tail) runCheck(ctx context.Context, c *endCheck, end uint64) {
	logs := t.shard.logs
	c.at = logs.cfg.Now()
	c.last, c.err = logs.endAtLeast(ctx, t.hub, end)
	if c.err != nil {
		return
	}
	c.last = max(c.last, t.epoch.After)
	if c.last < end {
		// The journal has lost records that readers have seen, for example by a power cut on a disk
		// that does not sync. Readers cannot continue.
		logs.cfg.Logger.Error(
			"hub log lost events", "hub_id", t.hub, "last_seen", end, "last_stored", c.last,
		)
		t.shard.remove(t, ErrEpochEnded)
		c.err = ErrEpochEnded
		return
	}
	t.skipTo(c.last)
	t.Lock()
	defer t.Unlock()
	if c.err = t.err; c.err == nil {
		t.checkedEnd, t.checkedAt = c.last, c.at
	}
}

// endAtLeast returns the last sequence of a hub's log. An end before the sequence seen counts only
// if the journal has repeated it for lossPatience: a stale answer would end the readers of an
// intact log. It does not count while this process has begun to store records and does not know
// whether they are stored, since another process may have seen them: that is ErrUnconfirmed.
func (l *Logs) endAtLeast(ctx context.Context, hub domain.HubID, seen uint64) (uint64, error) {
	begun := time.Now()
	for {
		committing := l.cfg.Journal != nil && l.cfg.Journal.IsCommitting(hub, begun)
		last, _, err := l.end(ctx, hub)
		switch {
		case err != nil || last >= seen:
			return last, err
		case time.Since(begun) < lossPatience:
		case committing:
			return 0, fmt.Errorf(
				"hub log of %s: %w: it ends at %d, before %d, and a commit is under way", hub,
				jsapi.ErrUnconfirmed, last, seen,
			)
		default:
			return last, nil
		}
		if !streams.Sleep(ctx, lossPause) {
			return 0, ctx.Err()
		}
	}
}
