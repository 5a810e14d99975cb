package httpapi

import (
	"context"
	"time"
)

// feedStart is where a page or a stream of events begins. The zero value is the default: a page
// begins with the oldest event, a stream with the next new one.
type feedStart struct {
	// At most one of the fields is set: after a position, with the events stored since a time, or
	// with the newest events.
	after string
	since time.Time
	last  int
}

// feedStart reads the parameters that choose the beginning.
func (q query) feedStart(now time.Time) (start feedStart, err error) {
	var given []string
	for _, name := range []string{"after", "since", "last"} {
		if _, ok := q.get(name); ok {
			given = append(given, name)
		}
	}
	if len(given) > 1 {
		return start, invalid(
			"%s: cannot be combined with %s: each says where to begin", given[1], given[0],
		)
	}
	start.after, _ = q.get("after")
	if start.since, _, err = q.timestamp("since"); err != nil {
		return start, err
	}
	if start.since.After(now) {
		return start, invalid("since: must not be in the future")
	}
	start.last, err = q.integer("last", 1, maxEventPage, 0)
	return start, err
}

// cursor returns the position of the beginning, "" for the default.
func (s feedStart) cursor(ctx context.Context, events feed) (string, error) {
	switch {
	case !s.since.IsZero():
		return events.Since(ctx, s.since)
	case s.last > 0:
		return events.Last(ctx, s.last)
	}
	return s.after, nil
}
