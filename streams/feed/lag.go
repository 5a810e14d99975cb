package feed

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
)

// lagPatience bounds the search for the first event after a position.
const lagPatience = time.Second

// eventsAfter returns how many events of the log are after the one with a number.
func (t *tail) eventsAfter(number uint64) uint64 {
	tip, _ := t.shard.logs.cfg.Journal.Tip(t.hub)
	return tip.Events - min(tip.Events, number)
}

// eventsBehind returns how many events are after a sequence. It reads the next one, from the ring
// or like a reader. Where that fails, it counts all records of the log.
func (t *tail) eventsBehind(ctx context.Context, pos uint64) uint64 {
	ctx, cancel := context.WithTimeout(ctx, lagPatience)
	defer cancel()
	for {
		b, err := t.read(ctx, pos, space{events: 1, bytes: unbounded}, true)
		var gone *goneError
		switch {
		case errors.As(err, &gone):
			pos = max(gone.first-1, pos+1)
			continue
		case err != nil:
			t.Lock()
			defer t.Unlock()
			return t.end - min(t.end, pos)
		case len(b.events) > 0:
			return t.eventsAfter(b.events[0].Number - 1)
		case b.next == pos:
			return 0
		}
		pos = b.next
	}
}

// lagOf returns the lag of a cursor after which that many events follow.
func lagOf(text string, behind uint64) domain.FeedLag {
	lag := domain.FeedLag{Behind: behind}
	if c, err := parseCursor(text); err == nil {
		lag.At = c.stored()
	}
	return lag
}

// Lag returns how far the reader is behind the log's end.
func (r *Reader) Lag(ctx context.Context) domain.FeedLag {
	return lagOf(r.Cursor(), r.tail.eventsBehind(ctx, r.pos))
}

// Lag returns how far a cursor is behind the log's end, as this process knows it. Errors are those
// of Page.
func (l *Logs) Lag(
	ctx context.Context, hub domain.HubID, after string,
) (lag domain.FeedLag, err error) {
	c, err := parseCursor(after)
	if err != nil {
		return lag, err
	}
	t, err := l.shard(hub).acquire(hub)
	if err != nil {
		return lag, unavailable(err)
	}
	defer l.shard(hub).release(t)
	if c.epoch != t.epoch.At(c.seq) || c.seq < t.epoch.After || l.age(c) > l.cfg.Retention {
		return lag, errExpired()
	}
	return lagOf(after, t.eventsBehind(ctx, c.seq)), nil
}

// LeftFrom returns how many events of the backlog are from the one with a number on.
func (b *Backlog) LeftFrom(number uint64) uint64 { return b.total - min(b.total, number-1) }
