package hublog

import (
	"context"
	"errors"

	"hubcloud/domain"
)

// Reader reads a hub's log on and on, from where Follow began. It belongs to one goroutine, which
// also closes it; it has no goroutine of its own and no queue, so it may be left alone for as long
// as one likes: what is expired by then ends it.
type Reader struct {
	logs *Logs
	tail *tail
	ctx  context.Context
	// pos is the sequence up to which everything was given out.
	pos uint64
	// text is the cursor of the last event, or of where the reader began, or the last position.
	text string
	// inRing says that the ring had what was read last.
	inRing bool
	closed bool
	// group, if any, is woken by the tail for this reader; due, which is the group's, says that it
	// has a turn there.
	group *Group
	due   bool
}

// Follow begins to read behind the cursor after; an empty one stands for the log's end now, so that
// the first event is the next one to be stored. ctx bounds all that the reader reads. Errors are
// those of Page.
func (l *Logs) Follow(ctx context.Context, hub domain.HubID, after string) (*Reader, error) {
	if err := l.refresh(ctx, hub, after); err != nil {
		return nil, unavailable(err)
	}
	for try := 1; ; try++ {
		r, err := l.follow(ctx, hub, after)
		if after == "" && errors.Is(err, ErrLogEnded) && try < freshTries {
			// Begun anew at this very moment: the new log has an end too.
			continue
		}
		return r, unavailable(err)
	}
}

func (l *Logs) follow(ctx context.Context, hub domain.HubID, after string) (*Reader, error) {
	s := l.shard(hub)
	begin, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	t, err := s.acquire(begin, hub)
	if err != nil {
		return nil, err
	}
	r := &Reader{logs: l, tail: t, ctx: ctx, text: after}
	if after == "" {
		err = r.startAtEnd(begin)
	} else {
		err = r.startBehind(begin, after)
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
	r.text = cursorAt(r.tail.epoch, end.last, end.at.UnixMilli()).String()
	return nil
}

func (r *Reader) startBehind(ctx context.Context, after string) error {
	c, err := r.logs.resume(ctx, r.tail, after)
	if err != nil {
		return err
	}
	r.pos = c.seq
	if r.tail.holds(c.seq) {
		return nil
	}
	end, err := r.tail.check(ctx)
	if err != nil {
		return err
	}
	if end.first > c.seq+1 {
		return errExpired()
	}
	return nil
}

// nextBytes is about how much one Next gives at most: what a reader can hold back that is not read
// from.
const nextBytes = 32 << 10

// Next gives up to limit events that follow, and about nextBytes, in order; none says that none is
// there yet. It may give fewer than there are: Ready tells. The events and the slice are shared
// with other readers and must not be changed. Errors: ErrLogEnded when the log was begun anew;
// cursor_expired when events that the reader was yet to get have expired; ErrClosed; and those of
// the broker, after which Next may be called again.
func (r *Reader) Next(limit int) ([]domain.EncodedEvent, error) {
	wanted := room{events: limit, bytes: nextBytes}
	for {
		v, err := r.tail.view(r.pos, wanted, true)
		if err != nil {
			return nil, err
		}
		if v.logTo > 0 {
			if r.inRing {
				r.logs.metrics.overruns.Inc()
			}
			v.events, v.next, _, err = r.logs.history.read(
				r.ctx, r.tail, r.pos+1, v.logTo, wanted, true,
			)
			var gone *dropped
			if errors.As(err, &gone) {
				return nil, errExpired()
			}
			if err != nil {
				return nil, unavailable(err)
			}
		}
		r.inRing = v.logTo == 0
		if v.next == r.pos {
			return nil, nil
		}
		r.pos = v.next
		if n := len(v.events); n > 0 {
			r.text = v.events[n-1].Cursor
			return v.events, nil
		}
	}
}

// Ready gives a channel that is closed once Next has something to say: events, or that the log has
// ended. It is good for one wait.
func (r *Reader) Ready() <-chan struct{} { return r.tail.wait(r.pos) }

// Position gives the cursor to go on from: that of the last event that Next has given, or of where
// the reader began. Once that is older than half the retention and the log has been quiet since, it
// is a position that was made anew.
func (r *Reader) Position() string {
	seen, at := r.tail.position()
	if r.pos >= seen {
		r.text = r.logs.renew(r.text, cursorAt(r.tail.epoch, r.pos, at.UnixMilli()))
	}
	return r.text
}

// Close lets go of the log. Closing again does nothing.
func (r *Reader) Close() {
	if !r.closed {
		r.closed = true
		r.tail.shard.release(r.tail)
	}
}
