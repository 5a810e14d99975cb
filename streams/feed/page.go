package feed

import (
	"context"
	"errors"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// freshTries is how often a read without a cursor restarts because the oldest event has expired
// meanwhile or a new epoch has begun.
const freshTries = 5

// Page returns up to limit events after a cursor, oldest first. An empty cursor stands for the
// start of the log. The page reflects everything stored before the call, and HasMore is exact.
//
// Next is the last event's cursor. When no event follows and that cursor is older than half the
// retention, Next is a new position for the same place, so that it does not expire for a client
// that keeps reading. Errors: invalid_request for a malformed cursor, cursor_expired, not_found for
// a hub without an organization, and service_unavailable.
func (l *Logs) Page(
	ctx context.Context, hub domain.HubID, after string, limit int,
) (domain.EventPage, error) {
	return l.Part(ctx, hub, after, limit, unbounded, 0)
}

// Part returns a part of a page: as Page, but at most about that many bytes of envelopes, and at
// least one event if any follows. Parts read one after the other, each from the Next of the former
// while HasMore is set, make a page. When no event follows, Part waits for one for the given time.
// It returns an empty page after that time, and when ctx ends meanwhile. The events are shared with
// the cache; the slice must not be kept, since it keeps more of the cache in memory than it shows.
func (l *Logs) Part(
	ctx context.Context, hub domain.HubID, after string, limit, bytes int, wait time.Duration,
) (domain.EventPage, error) {
	l.metrics.pages.Inc()
	begun := time.Now()
	if err := l.refresh(ctx, hub, after); err != nil {
		return domain.EventPage{}, unavailable(err)
	}
	for try := 1; ; try++ {
		page, err := l.readPart(
			ctx, hub, after, space{events: max(limit, 1), bytes: max(bytes, 1)},
			wait-time.Since(begun),
		)
		err = unavailable(err)
		var gone *goneError
		switch {
		case err == nil:
			return page, nil
		case errors.As(err, &gone) && after != "":
			return page, errExpired()
		case after == "" && try < freshTries && (gone != nil || errors.Is(err, ErrEpochEnded)):
		default:
			return page, err
		}
	}
}

// readPart is one try of Part.
func (l *Logs) readPart(
	ctx context.Context, hub domain.HubID, after string, wanted space, patience time.Duration,
) (domain.EventPage, error) {
	s := l.shard(hub)
	startCtx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	t, err := s.acquire(hub)
	if err != nil {
		return domain.EventPage{}, err
	}
	defer s.release(t)
	r := pageRead{logs: l, tail: t, after: after, limit: wanted.events, bytes: wanted.bytes}
	if err := r.start(startCtx); err != nil {
		return domain.EventPage{}, err
	}
	if err := r.fill(startCtx, true); err != nil {
		return domain.EventPage{}, err
	}
	if len(r.events) == 0 && patience > 0 {
		if err := r.await(ctx, patience); err != nil {
			return domain.EventPage{}, err
		}
	}
	page := r.page()
	behind := uint64(0)
	if page.HasMore {
		behind = t.eventsAfter(page.Events[len(page.Events)-1].Number)
	}
	page.Lag = lagOf(page.Next, behind)
	return page, nil
}

// unavailable returns a temporary error of the broker as a domain.Unavailable, others unchanged.
func unavailable(err error) error {
	return jsapi.Unavailable(
		err, "the hub's event log has no leader at the moment: retry from the same cursor later",
	)
}

// pageRead is a page under construction.
type pageRead struct {
	logs  *Logs
	tail  *tail
	after string
	limit int

	// from is the decoded after.
	from cursor
	// pos is the sequence up to which the log was read.
	pos    uint64
	events []domain.EncodedEvent
	// bytes is how many more bytes fit.
	bytes int
	// more reports whether an event follows that does not fit.
	more bool
	// lastCheck is the last check of the tail. Unless more events follow than asked for, pos has
	// reached the end that it found.
	lastCheck endCheck
	// checkFresh reports whether start made lastCheck, a moment ago.
	checkFresh bool
}

// start sets pos to the sequence after which the page begins.
func (r *pageRead) start(ctx context.Context) (err error) {
	if r.after == "" {
		if r.lastCheck, err = r.tail.check(ctx); err != nil {
			return err
		}
		r.checkFresh = true
		first, err := r.tail.first(ctx)
		r.pos = min(first-1, r.lastCheck.last)
		return err
	}
	r.from, err = r.logs.resume(ctx, r.tail, r.after)
	r.pos = r.from.seq
	return err
}

// fill reads up to one event more than asked for, which shows whether more follow. When that one is
// missing, fill checks the tail and reads again. If no event was found at all, it does so only with
// checkEmpty.
func (r *pageRead) fill(ctx context.Context, checkEmpty bool) error {
	if err := r.collect(ctx); err != nil {
		return err
	}
	if r.more || len(r.events) > r.limit || len(r.events) == 0 && !checkEmpty {
		return nil
	}
	if r.checkFresh {
		r.checkFresh = false
		return nil
	}
	check, err := r.tail.check(ctx)
	if err != nil {
		return err
	}
	r.lastCheck = check
	return r.collect(ctx)
}

// await reads the next events once there are any. It returns without events when patience has
// passed or ctx has ended.
func (r *pageRead) await(ctx context.Context, patience time.Duration) error {
	elapsed := time.NewTimer(patience)
	defer elapsed.Stop()
	for waiting := true; waiting && len(r.events) == 0; {
		before := r.pos
		var err error
		select {
		case <-r.tail.wait(r.pos):
			err = r.fillWithTimeout(ctx, false)
		case <-elapsed.C:
			err, waiting = r.fillWithTimeout(ctx, true), false
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			// HasMore cannot be computed any more for events that came at the last moment: leave
			// them to the next page.
			r.events, r.pos, r.more = nil, before, false
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fillWithTimeout is fill with a time limit of its own.
func (r *pageRead) fillWithTimeout(ctx context.Context, checkEmpty bool) error {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	return r.fill(ctx, checkEmpty)
}

// collect adds the events after pos that are visible now, up to one more than asked for.
func (r *pageRead) collect(ctx context.Context) error {
	for len(r.events) <= r.limit && !r.more {
		first, left := len(r.events) == 0, space{
			events: r.limit + 1 - len(r.events),
			bytes:  r.bytes,
		}
		v, err := r.tail.read(ctx, r.pos, left, first)
		if err != nil {
			return err
		}
		r.more = v.left.full
		if v.next == r.pos {
			return nil
		}
		r.pos = v.next
		if r.after == "" && len(r.events) == 0 {
			if v.events = r.logs.dropExpired(v.events); len(v.events) == 0 {
				r.more = false // without the expired events it may fit
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

// dropExpired drops the first events that are older than the retention. The broker removes them a
// little later; until then a page from the start would return events with expired cursors.
func (l *Logs) dropExpired(events []domain.EncodedEvent) []domain.EncodedEvent {
	for i, event := range events {
		if c, err := parseCursor(event.Cursor); err != nil || l.age(c) <= l.cfg.Retention {
			return events[i:]
		}
	}
	return nil
}

// page returns the page.
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
		Next:   r.logs.renew(next, cursorAt(r.tail.epoch, r.pos, r.lastCheck.at.UnixMilli())),
	}
}
