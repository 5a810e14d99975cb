package directory

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"hubcloud/streams/jsapi"
)

// Replay calls fn with every event after a sequence, up to and including until, in the order of the
// log and without a gap, in batches of 1 to 1,000. Calls of fn never overlap, and fn may keep the
// batch. On a long log Replay is faster than Follow: several goroutines decode a few thousand
// events ahead of fn.
//
// Replay waits while the broker is unreachable. Its errors are fn's, ctx's, ErrBeyondEnd when the
// log ends before until, and nats.ErrConnectionClosed.
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
	workers := runtime.GOMAXPROCS(0)
	r := &replay{
		log: l, after: after, until: until, fn: fn,
		undecoded: make(chan replayBatch, workers), ordered: make(chan replayBatch, 2*workers),
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.read(ctx) })
	for range workers {
		group.Go(r.decode)
	}
	group.Go(func() error { return r.deliver(ctx) })
	return group.Wait()
}

// replay is one Replay. Its reader queues each batch twice: in undecoded for any decoder, and in
// ordered for the goroutine that calls fn.
type replay struct {
	log          *Log
	after, until uint64
	fn           func(batch []Recorded) error

	undecoded, ordered chan replayBatch
}

type replayBatch struct {
	// after is the sequence before the first message.
	after uint64
	msgs  []jsapi.Message
	// decoded receives the decoded batch. It has space for it, so decoders never wait.
	decoded chan []Recorded
}

// errReplayed ends the reading of a replay.
var errReplayed = errors.New("replayed")

// read queues the messages up to until.
func (r *replay) read(ctx context.Context) error {
	defer close(r.undecoded)
	defer close(r.ordered)
	f := &follower{log: r.log, position: r.after, announced: r.until}
	f.fn = func(msgs []jsapi.Message) error {
		last := msgs[len(msgs)-1].Sequence
		b := replayBatch{after: f.position, msgs: msgs, decoded: make(chan []Recorded, 1)}
		for len(b.msgs) > 0 && b.msgs[len(b.msgs)-1].Sequence > r.until {
			b.msgs = b.msgs[:len(b.msgs)-1]
		}
		for _, queue := range []chan replayBatch{r.ordered, r.undecoded} {
			select {
			case queue <- b:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if last >= r.until {
			return errReplayed
		}
		return nil
	}
	if err := f.readLog(ctx); !errors.Is(err, errReplayed) {
		return err
	}
	return nil
}

func (r *replay) decode() error {
	for b := range r.undecoded {
		b.decoded <- decode(b.after, b.msgs)
	}
	return nil
}

// deliver calls fn with the decoded batches in order.
func (r *replay) deliver(ctx context.Context) error {
	last := r.after
	for b := range r.ordered {
		select {
		case batch := <-b.decoded:
			if len(batch) == 0 {
				continue
			}
			last = batch[len(batch)-1].Seq
			if err := r.fn(batch); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if ctx.Err() == nil && last < r.until { // the last events of the log are missing
		return r.fn([]Recorded{missing(r.until, last+1, r.until)})
	}
	return ctx.Err()
}
