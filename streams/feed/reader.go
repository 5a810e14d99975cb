package feed

import (
	"context"
	"errors"

	"hubcloud/domain"
)

// Reader follows a hub's log. It must be used and closed by one goroutine. It has no goroutine and
// no queue, so it may be left unread for any time; it ends if its next event expires meanwhile.
type Reader struct {
	logs *Logs
	tail *tail
	// pos is the sequence up to which Next has returned everything.
	pos uint64
	// cursor is the last event's cursor, or a position: see Cursor.
	cursor string
	// inRing reports whether the last read was from the ring: a reader that leaves the ring is
	// counted.
	inRing bool
	closed bool
}

// Follow returns a reader of the events after a cursor. With an empty cursor the first event is the
// next one to be stored. Its errors are Page's.
func (l *Logs) Follow(ctx context.Context, hub domain.HubID, after string) (*Reader, error) {
	if err := l.refresh(ctx, hub, after); err != nil {
		return nil, unavailable(err)
	}
	for try := 1; ; try++ {
		r, err := l.follow(ctx, hub, after)
		if after == "" && errors.Is(err, ErrEpochEnded) && try < freshTries {
			// A new epoch began at this moment: follow it from its end.
			continue
		}
		return r, unavailable(err)
	}
}

func (l *Logs) follow(ctx context.Context, hub domain.HubID, after string) (*Reader, error) {
	s := l.shard(hub)
	startCtx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	t, err := s.acquire(hub)
	if err != nil {
		return nil, err
	}
	r := &Reader{logs: l, tail: t, cursor: after}
	if after == "" {
		err = r.startAtEnd(startCtx)
	} else {
		err = r.startAfter(startCtx, after)
	}
	if err != nil {
		s.release(t)
		return nil, err
	}
	return r, nil
}

func (r *Reader) startAtEnd(ctx context.Context) error {
	end, err := r.tail.check(ctx)
	if err != nil {
		return err
	}
	r.pos = end.last
	r.cursor = cursorAt(r.tail.epoch, end.last, end.at.UnixMilli()).String()
	return nil
}

func (r *Reader) startAfter(ctx context.Context, after string) error {
	c, err := r.logs.resume(ctx, r.tail, after)
	if err != nil {
		return err
	}
	r.pos = c.seq
	if r.tail.ringHolds(c.seq) {
		return nil
	}
	first, err := r.tail.first(ctx)
	if err == nil && first > c.seq+1 {
		return errExpired()
	}
	return err
}

// nextBytes is about how many bytes of events one Next returns, and so how much memory a caller
// that is slow to write them holds. It must not exceed sse.BatchBytes, the most that a stream sends
// at once.
const nextBytes = 32 << 10

// Next returns the next events in order, at most limit and about 32 KiB of them; none when no event
// has been stored since. When it returns fewer than are stored, Ready fires at once. The events and
// the slice are shared with other readers and must not be changed.
//
// Errors: ErrEpochEnded when a new epoch has begun, cursor_expired when the next event has expired,
// ErrLost, domain.ErrEventsClosed, and, which do not end the reader, ctx's and service_unavailable.
func (r *Reader) Next(ctx context.Context, limit int) ([]domain.EncodedEvent, error) {
	wanted := space{events: limit, bytes: nextBytes}
	for {
		v, err := r.tail.read(ctx, r.pos, wanted, true)
		if v.streamTo > 0 && r.inRing {
			r.logs.metrics.overruns.Inc()
		}
		var gone *goneError
		if errors.As(err, &gone) {
			return nil, errExpired()
		}
		if err != nil {
			return nil, unavailable(err)
		}
		r.inRing = v.streamTo == 0
		if v.next == r.pos {
			return nil, nil
		}
		r.pos = v.next
		if n := len(v.events); n > 0 {
			r.cursor = v.events[n-1].Cursor
			return v.events, nil
		}
		// Only records that are not events were read.
	}
}

// Ready returns a channel that is closed once Next has events or an error to return. It is good for
// one wait.
func (r *Reader) Ready() <-chan struct{} { return r.tail.wait(r.pos) }

// Cursor returns the cursor to continue from: the cursor of the last event that Next has returned,
// or the one that the reader began with. Once it is older than half the retention and no event has
// followed, Cursor returns a new one for the same place.
func (r *Reader) Cursor() string {
	if check := r.tail.lastCheck(); r.pos >= check.last {
		r.cursor = r.logs.renew(r.cursor, cursorAt(r.tail.epoch, r.pos, check.at.UnixMilli()))
	}
	return r.cursor
}

// CaughtUp returns a function that reports whether Next has returned every event that was stored
// before the call. Its errors are Next's.
func (r *Reader) CaughtUp(ctx context.Context) (reached func() bool, err error) {
	end, err := r.tail.check(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	return func() bool { return r.pos >= end.last }, nil
}

// Close ends the reader. Further calls do nothing.
func (r *Reader) Close() {
	if !r.closed {
		r.closed = true
		r.tail.shard.release(r.tail)
	}
}
