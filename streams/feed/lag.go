package feed

import (
	"context"
	"sort"

	"hubcloud/domain"
)

// eventsAfter returns how many events that readers see are after a sequence. It asks the broker
// only if the ring does not have them all and the log was not counted before. Records of commands
// and states do not count, unless they cannot be read at the moment or there are more than
// maxLoadedNonEvents of them.
func (t *tail) eventsAfter(ctx context.Context, pos uint64) uint64 {
	n, before := t.ringAfter(pos)
	if before <= pos {
		return n
	}
	logs := t.shard.logs
	logs.loadNonEvents(ctx, t.hub)
	// Events may have left the ring since.
	n, before = t.ringAfter(pos)
	return n + logs.eventsAfter(t.hub, pos, before)
}

// ringAfter returns how many events of the ring are after a sequence, and the sequence before which
// the ring begins, or the log ends.
func (t *tail) ringAfter(pos uint64) (n, before uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := sort.Search(len(t.ring), func(i int) bool { return t.ring[i].Seq > pos })
	return uint64(len(t.ring) - from), min(t.ringFrom-1, t.end)
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
	return lagOf(r.Cursor(), r.tail.eventsAfter(ctx, r.pos))
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
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	t, err := l.shard(hub).acquire(ctx, hub)
	if err != nil {
		return lag, unavailable(err)
	}
	defer l.shard(hub).release(t)
	if c.epoch != t.epoch.At(c.seq) || c.seq < t.epoch.After || l.age(c) > l.cfg.Retention {
		return lag, errExpired()
	}
	return lagOf(after, t.eventsAfter(ctx, c.seq)), nil
}

// LeftFrom returns how many events of the backlog are from a sequence on; 0 stands for the event
// that Next returns next. It is a count of sequences without the records that are known not to be
// events.
func (b *Backlog) LeftFrom(seq uint64) uint64 {
	if seq == 0 {
		seq = b.next
	}
	return b.logs.eventsAfter(b.log.hub, seq-1, b.last)
}
