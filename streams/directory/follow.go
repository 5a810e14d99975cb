package directory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

var (
	// ErrMissing says that events are not in the log where they should be: it was damaged.
	ErrMissing = errors.New("events are missing from the directory")
	// ErrBeyondEnd says that somebody wants to go on after an event that the log does not have: it
	// is another log, or was restored from an older copy.
	ErrBeyondEnd = errors.New("the directory ends before that event")
)

const (
	// followBatch is the most events that Follow gives at once.
	followBatch = 1000
	// followFeed is how many events may wait that were published again; further ones are read from
	// the log.
	followFeed = 2 * followBatch
	// followLook is how often Follow looks whether an event was not published again: that happens
	// at most once, and not across reconnects.
	followLook = time.Second
)

// Recorded is one event where it stands in the log.
type Recorded struct {
	Seq   uint64
	Event domain.Event
	// Fact is the event's data, nil when Err is set.
	Fact domain.Fact
	// Err says that there is an event, and that it cannot be read: domain.ErrUnknownEvent when a
	// newer program wrote it, ErrMissing when it is gone, something else when it is no event at
	// all.
	Err error
}

// Follow gives every event after a sequence, in the order of the log and without a gap, first those
// that are there, then new ones as they are stored, in batches of 1 to 1,000. It holds out while
// the broker is away, and ends with fn's error, with ctx's, with ErrBeyondEnd when the log ends
// before `after`, or with nats.ErrConnectionClosed. fn is called by one goroutine, Follow's own; it
// may keep the batch.
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
	// What is published again goes into a channel; what finds no room there is read from the log,
	// so nothing is lost if fn is slow.
	feed := make(chan jsapi.Message, followFeed)
	sub, err := l.nc.Subscribe(streams.DirectoryFeed, func(msg *nats.Msg) {
		if seq, err := jsapi.Sequence(msg); err == nil {
			select {
			case feed <- jsapi.Message{Sequence: seq, Data: msg.Data}:
			default:
			}
		}
	})
	if err != nil {
		return fmt.Errorf("directory: follow: %w", err)
	}
	// fails only when the connection is gone, and the subscription with it
	defer func() { _ = sub.Unsubscribe() }()

	f := &follower{log: l, position: after}
	f.fn = func(msgs []jsapi.Message) error { return fn(decode(f.position, msgs)) }
	look := time.NewTicker(followLook)
	defer look.Stop()
	for {
		if err := f.readLog(ctx); err != nil {
			return err
		}
		if err := f.takeFeed(ctx, feed, look.C); err != nil {
			return err
		}
	}
}

// awaitHead is Head without its patience.
func (l *Log) awaitHead(ctx context.Context, seen uint64) (uint64, error) {
	for {
		head, err := l.Head(ctx, seen)
		if err == nil || ctx.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) {
			return head, err
		}
	}
}

// follower is one Follow under way.
type follower struct {
	log *Log
	// fn takes messages, while position is still the sequence before them.
	fn func([]jsapi.Message) error
	// position is the sequence of the last event given, announced the highest that is known to be
	// stored.
	position, announced uint64
}

// readLog gives what the log holds after the position, until there is no more and what was
// announced has been given.
func (f *follower) readLog(ctx context.Context) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		before := f.position
		err := f.scanLog(ctx)
		var ended *endedError
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &ended):
			return ended.err
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("directory: follow: %w", err)
		case err == nil && f.position >= f.announced:
			return nil
		}
		// The broker is away, or a replica of it is behind.
		if f.position > before {
			pause = firstPause
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// endedError carries fn's error through readLog.
type endedError struct{ err error }

func (e *endedError) Error() string { return e.err.Error() }

// scanLog reads the log to its end. While a batch is given, the next one is under way.
func (f *follower) scanLog(ctx context.Context) error {
	g, err := f.log.api.NewBatchGetter(followBatch)
	if err != nil {
		return err
	}
	defer g.Close()
	request := jsapi.BatchRequest{
		Stream: streams.DirectoryStream, From: f.position + 1, Messages: followBatch, Bare: true,
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
		if err := f.give(msgs); err != nil {
			return &endedError{err}
		}
	}
}

func collect(ctx context.Context, g *jsapi.BatchGetter) ([]jsapi.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return g.Collect(ctx)
}

const (
	// firstPause and maxPause bound the pauses between reads of a log that cannot be read; they
	// double.
	firstPause = 5 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// sleep pauses for half of d to all of it, at random so that replicas do not read in step. It
// returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + rand.N(d/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// takeFeed gives what is published again for as long as it continues the log. It returns nil when
// the log is to be read: there is a gap, or it is time to look.
func (f *follower) takeFeed(ctx context.Context, feed <-chan jsapi.Message, look <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look:
			return nil
		case m := <-feed:
			msgs, gap := f.gather(m, feed)
			if len(msgs) > 0 {
				if err := f.give(msgs); err != nil {
					return err
				}
			}
			if gap {
				return nil
			}
		}
	}
}

// gather takes from the feed what is there and continues the log. gap says that something was
// announced that is further on.
func (f *follower) gather(m jsapi.Message, feed <-chan jsapi.Message) (msgs []jsapi.Message, gap bool) {
	next := f.position + 1
	for {
		f.announced = max(f.announced, m.Sequence)
		switch {
		case m.Sequence == next:
			msgs = append(msgs, m)
			next++
		case m.Sequence > next:
			return msgs, true
		}
		if len(msgs) == followBatch {
			return msgs, false
		}
		select {
		case m = <-feed:
		default:
			return msgs, false
		}
	}
}

// give hands messages over.
func (f *follower) give(msgs []jsapi.Message) error {
	err := f.fn(msgs)
	f.position = msgs[len(msgs)-1].Sequence
	return err
}

// decode reads messages that follow a sequence, with what is missing between them.
func decode(after uint64, msgs []jsapi.Message) []Recorded {
	batch := make([]Recorded, 0, len(msgs))
	for _, m := range msgs {
		if next := after + 1; m.Sequence > next {
			batch = append(
				batch,
				Recorded{
					Seq: next,
					Err: fmt.Errorf("%w: sequences %d to %d", ErrMissing, next, m.Sequence-1),
				},
			)
		}
		r := Recorded{Seq: m.Sequence}
		r.Event, r.Fact, r.Err = domain.DecodeEvent(m.Data)
		if r.Err != nil {
			r.Fact = nil
		}
		batch = append(batch, r)
		after = m.Sequence
	}
	return batch
}
