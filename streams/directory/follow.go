package directory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

var (
	// ErrMissing means that events are missing from the middle of the log: it was damaged.
	ErrMissing = errors.New("events are missing from the directory")
	// ErrBeyondEnd means that the log ends before the sequence that the caller wants to continue
	// from: it is another log, or it was restored from an older copy.
	ErrBeyondEnd = errors.New("the directory ends before that event")
)

const (
	// batchSize is the most events in one batch of Follow and Replay.
	batchSize = 1000
	// feedCapacity is the most events of the feed that wait for fn. Further ones are read from the
	// log.
	feedCapacity = 2 * batchSize
	// rereadEvery is how often Follow reads the log for events that the feed did not have. The
	// broker publishes each event to the feed at most once, and drops it while Follow is
	// disconnected.
	rereadEvery = time.Second
)

// Recorded is an event and its position in the log.
type Recorded struct {
	Seq   uint64
	Event domain.Event
	// Fact is the event's data; nil when Err is set.
	Fact domain.Fact
	// Err is why the event cannot be read: domain.ErrUnknownEvent when a newer program wrote it,
	// ErrMissing when it is gone, another error when it is not a valid event.
	Err error
}

// Follow calls fn with every event after a sequence, in the order of the log and without a gap:
// first the stored ones, then new ones as they are stored, in batches of 1 to 1,000. Calls of fn
// never overlap, and fn may keep the batch.
//
// Follow waits while the broker is unreachable. It returns only with an error: fn's, ctx's,
// ErrBeyondEnd when the log ends before the sequence, or nats.ErrConnectionClosed.
func (l *Log) Follow(ctx context.Context, after uint64, fn func(batch []Recorded) error) error {
	head, err := l.awaitHead(ctx, after)
	if err != nil {
		return fmt.Errorf("directory: follow: %w", err)
	}
	if head < after {
		return fmt.Errorf(
			"directory: follow after sequence %d of %d: %w", after, head, ErrBeyondEnd,
		)
	}
	// Events that the channel has no space for are read from the log, so a slow fn loses none.
	feed := make(chan jsapi.Message, feedCapacity)
	sub, err := l.nc.Subscribe(streams.DirectoryFeed, func(msg *nats.Msg) {
		if seq, err := jsapi.Sequence(msg); err == nil {
			// The header only shows that a message is of a batch; no other one keeps it.
			m := jsapi.Message{Sequence: seq, Data: msg.Data}
			if jsapi.Field(msg.Header, jsapi.HeaderBatchSequence) != "" {
				m.Header = msg.Header
			}
			select {
			case feed <- m:
			default:
			}
		}
	})
	if err != nil {
		return fmt.Errorf("directory: follow: %w", err)
	}
	defer streams.Unsubscribe(sub)

	f := &follower{log: l, position: after}
	f.fn = func(msgs []jsapi.Message) error { return fn(decode(f.position, msgs)) }
	reread := time.NewTicker(rereadEvery)
	defer reread.Stop()
	for {
		if err := f.readLog(ctx); err != nil {
			return err
		}
		if err := f.readFeed(ctx, feed, reread.C); err != nil {
			return err
		}
	}
}

// awaitHead returns Head's result, and waits while the broker is unreachable.
func (l *Log) awaitHead(ctx context.Context, seen uint64) (uint64, error) {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		head, err := l.Head(ctx, seen)
		if err == nil || errors.Is(err, nats.ErrConnectionClosed) {
			return head, err
		}
		if !sleep(ctx, pause) {
			return 0, ctx.Err()
		}
	}
}

// follower is the state of one Follow or Replay.
type follower struct {
	log *Log
	// fn is called with each batch, while position is still the sequence before the batch.
	fn func([]jsapi.Message) error
	// position is the sequence of the last event passed to fn.
	position uint64
	// announced is the highest sequence that is known to be stored.
	announced uint64
}

// readLog passes the events after position to fn, until the log has no more and announced is
// reached.
func (f *follower) readLog(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		before := f.position
		err := f.scanLog(ctx)
		var callback *callbackError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &callback):
			return callback.err
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("directory: follow: %w", err)
		case err == nil && f.position >= f.announced:
			return nil
		}
		// The broker is unreachable, or the replica that answered is behind.
		if f.position > before {
			pause = firstPause
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// callbackError is an error of fn, which readLog must not retry.
type callbackError struct{ err error }

func (e *callbackError) Error() string { return e.err.Error() }

// scanLog reads the log to its end. It requests the next batch before it calls fn with the current
// one.
func (f *follower) scanLog(ctx context.Context) error {
	g, err := f.log.api.NewBatchGetter(batchSize)
	if err != nil {
		return err
	}
	defer g.Close()
	request := jsapi.BatchRequest{
		Stream: streams.DirectoryStream, From: f.position + 1, Messages: batchSize, Bare: true,
	}
	if err := g.Request(request); err != nil {
		return err
	}
	for {
		msgs, err := collect(ctx, g)
		if err != nil || len(msgs) == 0 {
			return err
		}
		request.From = msgs[len(msgs)-1].Sequence + 1
		if err := g.Request(request); err != nil {
			return err
		}
		if err := f.deliver(msgs); err != nil {
			return &callbackError{err}
		}
	}
}

func collect(ctx context.Context, g *jsapi.BatchGetter) ([]jsapi.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return g.Collect(ctx)
}

// readFeed passes events from the feed to fn. It returns nil when the log must be read: the feed
// has a gap or an event of an atomic batch, or reread fires.
func (f *follower) readFeed(
	ctx context.Context, feed <-chan jsapi.Message, reread <-chan time.Time,
) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reread:
			return nil
		case m := <-feed:
			msgs, gap := f.nextBatch(m, feed)
			if len(msgs) > 0 {
				if err := f.deliver(msgs); err != nil {
					return err
				}
			}
			if gap {
				return nil
			}
		}
	}
}

// nextBatch returns the consecutive events after position that m and the feed have now. It drops
// events up to position. gap reports that it stopped at an event that does not follow, or at one of
// an atomic batch: the broker publishes these before the batch is on disk, and a crash may take
// back what fn has seen. A read of the log waits for the batch.
func (f *follower) nextBatch(
	m jsapi.Message, feed <-chan jsapi.Message,
) (msgs []jsapi.Message, gap bool) {
	next := f.position + 1
	for {
		f.announced = max(f.announced, m.Sequence)
		switch {
		case m.Sequence < next:
		case m.Sequence > next || m.Header != nil:
			return msgs, true
		default:
			msgs = append(msgs, m)
			next++
		}
		if len(msgs) == batchSize {
			return msgs, false
		}
		select {
		case m = <-feed:
		default:
			return msgs, false
		}
	}
}

// deliver calls fn and advances the position.
func (f *follower) deliver(msgs []jsapi.Message) error {
	err := f.fn(msgs)
	f.position = msgs[len(msgs)-1].Sequence
	return err
}

// decode decodes the messages after a sequence. Each gap between them becomes a Recorded with
// ErrMissing.
func decode(after uint64, msgs []jsapi.Message) []Recorded {
	batch := make([]Recorded, 0, len(msgs))
	for _, m := range msgs {
		if next := after + 1; m.Sequence > next {
			batch = append(batch, missing(next, next, m.Sequence-1))
		}
		r := Recorded{Seq: m.Sequence}
		r.Event, r.Fact, r.Err = domain.DecodeEvent(m.Data)
		batch = append(batch, r)
		after = m.Sequence
	}
	return batch
}

// missing returns the Recorded at seq that stands for the lost sequences from first to last.
func missing(seq, first, last uint64) Recorded {
	return Recorded{
		Seq: seq, Err: fmt.Errorf("%w: sequences %d to %d", ErrMissing, first, last),
	}
}
