package orgfeed

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// Reader follows an organization's feed. It must be used and closed by one goroutine. It has no
// goroutine and no queue, so it may be left unread for any time.
type Reader struct {
	feed   *Feed
	ring   *ring
	filter domain.EventFilter
	// pos is what was delivered or filtered out. text is the text of the last position that was
	// returned, which had the Complete complete; moved reports that pos is another one.
	pos      Position
	text     string
	complete int64
	moved    bool
	// merge and catch-up are nil while the reader reads the ring. One of them is set otherwise.
	merge   *merge
	catchUp *catchUp
	// joined reports whether the reader has a place in the ring or the catch-up.
	joined bool
	// number is the number of its next entry.
	number uint64
	// times are the times of the ring or the catch-up before that entry. They differ from the times
	// of pos if the position came from a process that received the events in another order.
	times []int64
	// more reports that Next has left events that are there.
	more bool
	// fresh reports that the reader had no position and has not read up to the end yet: it has lost
	// nothing, and gets no feed.gap.
	fresh bool
	// resets has, by hub, the present epoch of the last reset that a feed.gap was returned for.
	resets map[domain.HubID]domain.EpochID
	// scanned counts the events that were looked at.
	scanned int
	// held was read but not returned yet.
	held   []domain.EncodedEvent
	closed bool
}

// Follow returns a reader of the events after a position that the filter chooses. With an empty
// position the first event is the next one to be stored. Errors: invalid_request for a malformed
// position, cursor_expired, and service_unavailable.
func (f *Feed) Follow(
	ctx context.Context, org string, filter domain.EventFilter, after string,
) (*Reader, error) {
	r, err := f.newReader(ctx, org, filter, after)
	if err != nil || after != "" {
		return r, err
	}
	at, err := f.sync(ctx)
	if err != nil {
		r.Close()
		return nil, err
	}
	r.pos.Times, _, _ = r.ring.lastTimes()
	r.pos.Complete, r.moved = at, true
	return r, nil
}

// FollowSince returns a reader of the events that the filter chooses and that were stored at a time
// or later, as far as they are kept. Its errors are Follow's.
func (f *Feed) FollowSince(
	ctx context.Context, org string, filter domain.EventFilter, since time.Time,
) (*Reader, error) {
	r, err := f.newReader(ctx, org, filter, "")
	if err != nil {
		return nil, err
	}
	r.pos = f.since(since)
	return r, nil
}

// newReader returns a reader from a position. Without one it begins with the oldest events.
func (f *Feed) newReader(
	ctx context.Context, org string, filter domain.EventFilter, after string,
) (r *Reader, err error) {
	r = &Reader{feed: f, filter: filter}
	if after == "" {
		r.pos, r.moved, r.fresh = f.oldest(), true, true
	} else {
		if r.pos, err = ParsePosition(after, f.groups); err != nil {
			return nil, err
		}
		if f.expired(r.pos) {
			return nil, errExpired()
		}
		r.text, r.complete = after, r.pos.Complete
	}
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	if r.ring, err = f.acquire(ctx, org); err != nil {
		return nil, unavailable(err)
	}
	return r, nil
}

// oldest returns the position before the oldest events. It leaves those out that would expire while
// the position is on its way to the client.
func (f *Feed) oldest() Position {
	at := f.cfg.Now().Add(f.cfg.Retention/100 - f.cfg.Retention)
	p := Position{Complete: at.UnixMilli(), Times: make([]int64, f.groups)}
	for g := range p.Times {
		p.Times[g] = at.UnixNano()
	}
	return p
}

const (
	// nextBytes is about how many bytes of events one Next returns. It must not exceed
	// sse.BatchBytes, the most that a stream sends at once.
	nextBytes = 32 << 10
	// maxScan is the most events that one Next looks at, so that a filter that chooses few of them
	// cannot keep the caller for long.
	maxScan = 5000
)

// Next returns the next events that the filter chooses, at most limit and about 32 KiB of them;
// none when no event has been stored since, or only others. When it leaves events that are stored,
// Ready fires at once. The events and the slice are shared with other readers and must not be
// changed.
//
// Errors: cursor_expired when the next events have expired, domain.ErrEventsClosed, and, which do
// not end the reader, ctx's and service_unavailable.
func (r *Reader) Next(ctx context.Context, limit int) ([]domain.EncodedEvent, error) {
	return r.next(ctx, limit, nextBytes, true)
}

// next is Next with a number of bytes. Without frames the events of a merge have only an envelope,
// a cursor and the time at which they were stored.
func (r *Reader) next(
	ctx context.Context, limit, bytes int, frames bool,
) ([]domain.EncodedEvent, error) {
	if len(r.held) > 0 {
		events := r.held[:min(limit, len(r.held))]
		r.held = r.held[len(events):]
		if len(events) > 0 {
			r.text, r.complete, r.moved = events[len(events)-1].Cursor, r.pos.Complete, true
		}
		return events, nil
	}
	b := batch{reader: r, limit: limit, bytes: bytes, frames: frames}
	err := b.read(ctx)
	r.scanned += b.scanned
	if len(b.events) == 0 {
		return nil, err
	}
	return b.events, nil // the next call returns the error
}

// Ready returns a channel that is closed once Next may have events or an error to return. It is
// good for one wait.
func (r *Reader) Ready() <-chan struct{} {
	return r.ring.wait(
		r.number, r.merge != nil || r.catchUp != nil || !r.joined || r.more || len(r.held) > 0,
	)
}

// Cursor returns the position to continue from: after the last event that Next has returned, or a
// later one without an event in between that the filter chooses.
func (r *Reader) Cursor() string {
	old := r.feed.cfg.Now().Sub(time.UnixMilli(r.complete)) > r.feed.cfg.Retention/2
	if len(r.held) == 0 && (r.moved || r.text == "" || old && r.pos.Complete > r.complete) {
		r.text, r.complete, r.moved = r.pos.String(), r.pos.Complete, false
	}
	return r.text
}

// CaughtUp returns a function that reports whether Next has returned every event that was stored
// before the call. It fails with service_unavailable.
func (r *Reader) CaughtUp(ctx context.Context) (reached func() bool, err error) {
	if _, err := r.feed.sync(ctx); err != nil {
		return nil, err
	}
	times, _, _ := r.ring.lastTimes()
	return func() bool { return r.pos.includes(times) }, nil
}

// Close ends the reader. Further calls do nothing.
func (r *Reader) Close() {
	if !r.closed {
		r.closed = true
		r.leaveCatchUp()
		r.feed.release(r.ring)
	}
}

// leaveCatchUp makes the reader leave its catch-up, if it has one.
func (r *Reader) leaveCatchUp() {
	if r.catchUp != nil {
		r.catchUp.Detach()
		r.catchUp, r.joined = nil, false
	}
}

// reach moves the position to the end of a merge.
func (r *Reader) reach(until []int64, complete int64) {
	r.moved = r.moved || !r.pos.includes(until)
	r.pos.reach(until)
	r.pos.Complete = max(r.pos.Complete, complete)
}
