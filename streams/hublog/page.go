package hublog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

// freshTries is how often a read from the oldest event begins again because that has expired in the
// meantime, or the log was begun anew.
const freshTries = 5

// Page gives up to limit events behind the cursor after, oldest first; an empty one stands for the
// oldest that is kept. Everything is there that was stored before the call, and HasMore is exact.
//
// Next is the last event's cursor. When no event follows, and after or the last event is older than
// half the retention, it is a position instead that was made now: whoever keeps reading never finds
// it expired. Errors: invalid_request for what is no cursor, cursor_expired, not_found for a hub
// that nobody has, and those of the broker.
func (l *Logs) Page(
	ctx context.Context, hub domain.HubID, after string, limit int,
) (domain.EventPage, error) {
	return l.Part(ctx, hub, after, limit, unbounded, 0)
}

// Part is Page, but gives about so many bytes of envelopes at most, and one event at least: what is
// put together of parts, each from the Next of the former on for as long as there is more, is a
// page. When there is no event it waits for one, for that long; then, and when ctx ends meanwhile,
// it answers an empty page. The events are shared with the cache, of which the slice holds more
// than it shows: it must not be kept.
func (l *Logs) Part(
	ctx context.Context, hub domain.HubID, after string, limit, bytes int, wait time.Duration,
) (domain.EventPage, error) {
	l.metrics.pages.Inc()
	begun := time.Now()
	if err := l.refresh(ctx, hub, after); err != nil {
		return domain.EventPage{}, unavailable(err)
	}
	for try := 1; ; try++ {
		page, err := l.wait(
			ctx, hub, after, room{events: max(limit, 1), bytes: max(bytes, 1)},
			wait-time.Since(begun),
		)
		err = unavailable(err)
		var gone *dropped
		switch {
		case err == nil:
			return page, nil
		case errors.As(err, &gone) && after != "":
			return page, errExpired()
		case after == "" && try < freshTries && (gone != nil || errors.Is(err, ErrLogEnded)):
		default:
			return page, err
		}
	}
}

func (l *Logs) wait(
	ctx context.Context, hub domain.HubID, after string, wanted room, wait time.Duration,
) (domain.EventPage, error) {
	s := l.shard(hub)
	now, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	t, err := s.acquire(now, hub)
	if err != nil {
		return domain.EventPage{}, err
	}
	defer s.release(t)
	r := pageRead{logs: l, tail: t, after: after, limit: wanted.events, bytes: wanted.bytes}
	if err := r.start(now); err != nil {
		return domain.EventPage{}, err
	}
	if err := r.fill(now, true); err != nil {
		return domain.EventPage{}, err
	}
	if len(r.events) > 0 || wait <= 0 {
		return r.page(), nil
	}
	elapsed := time.NewTimer(wait)
	defer elapsed.Stop()
	for waiting := true; waiting && len(r.events) == 0; {
		quiet := r.pos
		select {
		case <-t.wait(r.pos):
			err = r.fillInTime(ctx, false)
		case <-elapsed.C:
			err, waiting = r.fillInTime(ctx, true), false
		case <-ctx.Done():
			waiting = false
		}
		if ctx.Err() != nil {
			// Whether more follows what may have come at the last moment can be told no more: it is
			// left for the next page.
			r.events, r.pos, r.more = nil, quiet, false
			break
		}
		if err != nil {
			return domain.EventPage{}, err
		}
	}
	return r.page(), nil
}

// readPatience bounds how long a page or the beginning of a stream waits for the broker: a cluster
// that lost a server has new leaders within ten seconds.
const readPatience = 15 * time.Second

// unavailable returns an error of the broker that passes as a domain.Unavailable.
func unavailable(err error) error {
	return streams.Unavailable(
		err,
		"the hub's event log cannot be read at the moment: no server leads it; go on from the same cursor later",
	)
}

// refresh brings the directory's view up to date when the cursor is not of the hub's log as this
// process knows it: another process, which is ahead, may have handed it out.
func (l *Logs) refresh(ctx context.Context, hub domain.HubID, after string) error {
	if after == "" || l.cfg.Refresh == nil {
		return nil
	}
	c, err := parseCursor(after)
	if err != nil {
		return err
	}
	epoch, err := l.epoch(hub)
	if err != nil || c.epoch == epoch.At(c.seq) && c.seq >= epoch.After ||
		l.age(c) > l.cfg.Retention {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	return l.cfg.Refresh(ctx)
}

// pageRead is one page in the making.
type pageRead struct {
	logs  *Logs
	tail  *tail
	after string
	limit int

	// from is the decoded after.
	from cursor
	// pos is the sequence up to which events were looked for, from where it began on.
	pos    uint64
	events []domain.EncodedEvent
	// bytes is the room for more.
	bytes int
	// more says that an event follows for which there is no room.
	more bool
	// end is the last check. When there are no more events than asked for, pos is at its end or
	// beyond.
	end *check
	// checked says that end is as good as one made now.
	checked bool
}

// start finds where to begin.
func (r *pageRead) start(ctx context.Context) (err error) {
	if r.after == "" {
		if r.end, err = r.tail.check(ctx); err != nil {
			return err
		}
		r.pos, r.checked = r.end.first-1, true
		return nil
	}
	r.from, err = r.logs.resume(ctx, r.tail, r.after)
	r.pos = r.from.seq
	return err
}

// resume decodes a cursor from which reading is to go on, and refuses it when it has expired as far
// as that can be told without reading.
func (l *Logs) resume(ctx context.Context, t *tail, after string) (cursor, error) {
	c, err := parseCursor(after)
	if err != nil {
		return c, err
	}
	if c.epoch != t.epoch.At(c.seq) || c.seq < t.epoch.After || l.age(c) > l.cfg.Retention {
		return c, errExpired()
	}
	if t.sees(c.seq) {
		return c, nil
	}
	// It may have been stored just now, and the feed is yet to bring it.
	if _, err := t.check(ctx); err != nil {
		return c, err
	}
	if t.sees(c.seq) {
		return c, nil
	}
	// Somebody has seen the log reach further. A stale answer would have the client resync for
	// nothing, so the leader must confirm that the log ends before.
	b, err := l.bounds(ctx, t.hub, c.seq)
	if err != nil {
		return c, err
	}
	if b.last < c.seq {
		return c, errExpired()
	}
	if _, err := t.check(ctx); err != nil {
		return c, err
	}
	if !t.sees(c.seq) {
		return c, fmt.Errorf(
			"hub log of %s: %w: it reached up to sequence %d a moment ago", t.hub,
			streams.ErrDoubtful, c.seq,
		)
	}
	return c, nil
}

func (l *Logs) age(c cursor) time.Duration { return l.cfg.Now().Sub(c.stored()) }

// fill reads on, up to one event more than asked for, which is not for the page. When that one does
// not come, the tail is checked and what there is then is read too; but not if there is no event at
// all, unless sure says so.
func (r *pageRead) fill(ctx context.Context, sure bool) error {
	if err := r.gather(ctx); err != nil {
		return err
	}
	if r.more || len(r.events) > r.limit || len(r.events) == 0 && !sure {
		return nil
	}
	if r.checked {
		// By start, a moment ago.
		r.checked = false
		return nil
	}
	end, err := r.tail.check(ctx)
	if err != nil {
		return err
	}
	r.end = end
	return r.gather(ctx)
}

// fillInTime is fill after a wait.
func (r *pageRead) fillInTime(ctx context.Context, sure bool) error {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	return r.fill(ctx, sure)
}

// gather adds the events behind pos that readers see now, up to one more than asked for.
func (r *pageRead) gather(ctx context.Context) error {
	for len(r.events) <= r.limit && !r.more {
		first, left := len(r.events) == 0, room{events: r.limit + 1 - len(r.events), bytes: r.bytes}
		v, err := r.tail.view(r.pos, left, first)
		if err != nil {
			return err
		}
		if v.logTo > 0 {
			v.events, v.next, v.left, err = r.logs.history.read(
				ctx, r.tail, r.pos+1, v.logTo, left, first,
			)
			if err != nil {
				return err
			}
		}
		r.more = v.left.over
		if v.next == r.pos {
			return nil
		}
		r.pos = v.next
		if r.after == "" && len(r.events) == 0 {
			if v.events = r.logs.retained(v.events); len(v.events) == 0 {
				r.more = false // what had no room may have it now
				continue
			}
		}
		r.bytes = v.left.bytes
		if len(v.events) > 0 {
			r.events = join(r.events, v.events)
		}
	}
	return nil
}

// retained leaves out the events at the beginning that are older than the retention. The broker
// removes them a little later than that, and until then a page from the oldest event would show
// events whose cursors have expired.
func (l *Logs) retained(events []domain.EncodedEvent) []domain.EncodedEvent {
	for i, event := range events {
		if c, err := parseCursor(event.Cursor); err != nil || l.age(c) <= l.cfg.Retention {
			return events[i:]
		}
	}
	return nil
}

// page makes the answer.
func (r *pageRead) page() domain.EventPage {
	if n := min(len(r.events), r.limit); n < len(r.events) || r.more {
		events := r.events[:n:n]
		return domain.EventPage{Events: events, Next: events[n-1].Cursor, HasMore: true}
	}
	next := r.after
	if n := len(r.events); n > 0 {
		next = r.events[n-1].Cursor
	}
	return domain.EventPage{
		Events: r.events,
		Next:   r.logs.renew(next, cursorAt(r.tail.epoch, r.pos, r.end.at.UnixMilli())),
	}
}

// renew gives the cursor text, or position, which is as good, when text is empty or older than half
// the retention.
func (l *Logs) renew(text string, position cursor) string {
	if text != "" {
		c, err := parseCursor(text)
		if err == nil && (l.age(c) <= l.cfg.Retention/2 || c.ms >= position.ms) {
			return text
		}
	}
	return position.String()
}

// Position gives a cursor of the log's end as it is now: what is stored before the call lies before
// it, what is stored afterwards behind it.
func (l *Logs) Position(ctx context.Context, hub domain.HubID) (string, error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return "", err
	}
	now := l.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	// A stale answer gives an older position, behind which some events come again: that is at least
	// once.
	b, err := l.bounds(ctx, hub, 0)
	if err != nil {
		return "", unavailable(err)
	}
	if b.last > 0 {
		// A crash must not take back what a cursor stands on.
		if err := l.settle(ctx, hub); err != nil {
			return "", unavailable(err)
		}
	}
	return cursorAt(epoch, max(b.last, epoch.After), now.UnixMilli()).String(), nil
}
