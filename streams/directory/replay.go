package directory

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"hubcloud/streams/jsapi"
)

// Replay gives every event after a sequence up to another one, and that one too, in the order of
// the log and without a gap, in batches of 1 to 1,000. Several goroutines decode ahead of fn, some
// thousands of events at most, so it is faster than Follow on a long log. It holds out while the
// broker is away, and ends with nil when it has given `until`, with fn's error, with ctx's, with
// ErrBeyondEnd when the log ends before `until`, or with nats.ErrConnectionClosed. fn is called by
// one goroutine at a time; it may keep the batch.
func (l *Log) Replay(
	ctx context.Context, after, until uint64, fn func(batch []Recorded) error,
) error {
	head, err := l.awaitHead(ctx, until)
	if err != nil {
		return fmt.Errorf("directory: replay: %w", err)
	}
	if head < until {
		return fmt.Errorf(
			"directory: replay up to sequence %d of %d: %w", until, head, ErrBeyondEnd,
		)
	}
	if after >= until {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	// What is read waits to be decoded, and what is decoded waits for its turn: each batch has a
	// channel of its own in the queue.
	workers := runtime.GOMAXPROCS(0)
	type slot struct {
		after   uint64
		msgs    []jsapi.Message
		decoded chan []Recorded
	}
	work := make(chan slot, workers)
	queue := make(chan slot, 2*workers)
	group.Go(func() error {
		defer close(work)
		defer close(queue)
		f := &follower{log: l, position: after, announced: until}
		f.fn = func(msgs []jsapi.Message) error {
			s := slot{after: f.position, msgs: msgs, decoded: make(chan []Recorded, 1)}
			for len(s.msgs) > 0 && s.msgs[len(s.msgs)-1].Sequence > until {
				s.msgs = s.msgs[:len(s.msgs)-1]
			}
			for _, to := range []chan slot{queue, work} {
				select {
				case to <- s:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if msgs[len(msgs)-1].Sequence >= until {
				return errReplayed
			}
			return nil
		}
		if err := f.readLog(ctx); !errors.Is(err, errReplayed) {
			return err
		}
		return nil
	})
	for range workers {
		group.Go(func() error {
			for s := range work {
				s.decoded <- decode(s.after, s.msgs)
			}
			return nil
		})
	}
	group.Go(func() error {
		last := after
		for s := range queue {
			select {
			case batch := <-s.decoded:
				if len(batch) == 0 {
					continue
				}
				last = batch[len(batch)-1].Seq
				if err := fn(batch); err != nil {
					return err
				}
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if ctx.Err() == nil && last < until { // the end of the log was damaged
			return fn(
				[]Recorded{
					{
						Seq: until,
						Err: fmt.Errorf("%w: sequences %d to %d", ErrMissing, last+1, until),
					},
				},
			)
		}
		return ctx.Err()
	})
	return group.Wait()
}

// errReplayed ends the reading of a replay.
var errReplayed = errors.New("replayed")
