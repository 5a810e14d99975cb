package feed

import (
	"context"
	"errors"
	"slices"

	"hubcloud/domain"
)

// Before returns up to limit events before a place in the log, newest first. A cursor stands for
// the place after its event; an empty cursor stands for the end of the log. The page then reflects
// everything stored before the call.
//
// Next is the place before the last event of the page, also for Page, which continues with that
// event. HasMore is exact. A place whose events have all expired is no error: the page is empty.
// Errors: invalid_request for a malformed cursor, cursor_expired for one from before a reset of the
// hub, not_found for a hub without an organization, and service_unavailable.
func (l *Logs) Before(
	ctx context.Context, hub domain.HubID, before string, limit int,
) (domain.EventPage, error) {
	l.metrics.pages.Inc()
	if err := l.refresh(ctx, hub, before); err != nil {
		return domain.EventPage{}, unavailable(err)
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for try := 1; ; try++ {
		page, err := l.readBefore(ctx, hub, before, max(limit, 1))
		if before == "" && try < freshTries && errors.Is(err, ErrEpochEnded) {
			continue
		}
		return page, unavailable(err)
	}
}

// Last returns the cursor before the newest n events, or before all that are kept if there are
// fewer. Its errors are Before's.
func (l *Logs) Last(ctx context.Context, hub domain.HubID, n int) (string, error) {
	end, err := l.EndCursor(ctx, hub)
	if err != nil {
		return "", err
	}
	page, err := l.Before(ctx, hub, end, n)
	return page.Next, err
}

// readBefore is one try of Before.
func (l *Logs) readBefore(
	ctx context.Context, hub domain.HubID, before string, limit int,
) (domain.EventPage, error) {
	s := l.shard(hub)
	t, err := s.acquire(hub)
	if err != nil {
		return domain.EventPage{}, err
	}
	defer s.release(t)
	end, err := l.placeBefore(ctx, t, before)
	if err != nil {
		return domain.EventPage{}, err
	}
	first, err := t.first(ctx)
	if err != nil {
		return domain.EventPage{}, err
	}
	page := domain.EventPage{Next: before}
	// One event more than asked for shows whether more follow.
	for end >= first && len(page.Events) <= limit {
		from := max(first, end/blockSize*blockSize)
		events, err := t.between(ctx, from, end)
		var gone *goneError
		if errors.As(err, &gone) {
			first = max(gone.first, first+1) // the first ones have just expired
			continue
		}
		if err != nil {
			return domain.EventPage{}, err
		}
		kept := l.dropExpired(events)
		for _, event := range slices.Backward(kept) {
			page.Events = append(page.Events, event)
		}
		if len(kept) < len(events) {
			break
		}
		end = from - 1
	}
	if len(page.Events) > limit {
		page.Events, page.HasMore = page.Events[:limit], true
	}
	if n := len(page.Events); n > 0 {
		page.Next = t.cursorBefore(page.Events[n-1])
	}
	return page, nil
}

// placeBefore returns the last sequence before the place that a cursor stands for.
func (l *Logs) placeBefore(ctx context.Context, t *tail, before string) (uint64, error) {
	if before == "" {
		check, err := t.check(ctx)
		if err != nil {
			return 0, err
		}
		return check.last, nil
	}
	c, err := parseCursor(before)
	if err != nil {
		return 0, err
	}
	if l.age(c) > l.cfg.Retention {
		return 0, nil // everything before it has expired
	}
	c, err = l.resume(ctx, t, before)
	return c.seq, err
}

// between returns the events from sequence from to to, both included.
func (t *tail) between(ctx context.Context, from, to uint64) ([]domain.EncodedEvent, error) {
	var events []domain.EncodedEvent
	for pos := from - 1; pos < to; {
		v, err := t.read(ctx, pos, space{events: int(to - pos), bytes: unbounded}, true)
		if err != nil {
			return nil, err
		}
		for _, event := range v.events {
			if event.Seq <= to {
				events = append(events, event)
			}
		}
		if v.next == pos {
			break // the log ends here
		}
		pos = v.next
	}
	return events, nil
}

// cursorBefore returns the position just before an event. It has the event's time: every message
// from the event on was stored at that time or later.
func (t *tail) cursorBefore(event domain.EncodedEvent) string {
	c, err := parseCursor(event.Cursor)
	if err != nil || c.seq == 0 {
		return event.Cursor // not for events of this package: their sequences begin with 1
	}
	return cursorAt(t.epoch, c.seq-1, c.ms).String()
}
