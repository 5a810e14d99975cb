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

// endCheck is the result of a comparison of a tail with the journal.
type endCheck struct {
	// last is where the log ends; the tail's end is at last or beyond. at is before the journal was
	// asked, so every record after last was stored at or after it.
	last uint64
	at   time.Time
}

// check compares the tail with the journal. Afterwards readers see everything that was stored
// before the call. Errors come from the broker, the tail and ctx.
func (t *tail) check(ctx context.Context) (c endCheck, err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	defer context.AfterFunc(t.life, cancel)()
	logs := t.shard.logs
	t.Lock()
	seen := t.end // what readers could see before the check
	t.checked = time.Now()
	t.Unlock()
	c.at = logs.cfg.Now()
	if c.last, err = logs.endAtLeast(ctx, t.hub, seen); err == nil {
		if c.last = max(c.last, t.epoch.After); c.last < seen {
			// The journal has lost records that readers have seen, for example by a power cut on a
			// disk that does not sync. Readers cannot continue.
			logs.cfg.Logger.Error(
				"hub log lost events", "hub_id", t.hub, "last_seen", seen, "last_stored", c.last,
			)
			t.shard.remove(t, ErrEpochEnded)
		}
		t.skipTo(c.last)
	}
	t.Lock()
	defer t.Unlock()
	if ended := t.Err(); ended != nil {
		return c, ended
	}
	if err != nil {
		return c, fmt.Errorf("check the end of the log of %s: %w", t.hub, err)
	}
	if c.at.After(t.known.at) {
		t.known = c
	}
	return c, nil
}

// checkSince starts a check if the tail has readers and its last check began before then.
func (t *tail) checkSince(then time.Time) (started bool) {
	t.Lock()
	defer t.Unlock()
	if t.Err() != nil || !t.HasReaders() || !t.checked.Before(then) {
		return false
	}
	t.checked = time.Now()
	t.shard.logs.work(func(ctx context.Context) {
		_, _ = t.check(ctx) // a reader that needs an answer asks by itself
	})
	return true
}

// endAtLeast returns the last sequence of a hub's log. An end before the sequence seen counts only
// if the journal has repeated it for lossPatience: a stale answer would end the readers of an
// intact log. It does not count while this process has begun to store records and does not know
// whether they are stored, since another process may have seen them: that is ErrUnconfirmed.
func (l *Logs) endAtLeast(ctx context.Context, hub domain.HubID, seen uint64) (uint64, error) {
	begun := time.Now()
	for {
		committing := l.cfg.Journal.IsCommitting(hub, begun)
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
