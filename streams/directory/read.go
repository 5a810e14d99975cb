package directory

import (
	"context"
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// loadBatch is the most events that one request of Load returns.
const loadBatch = 256

// Load calls fn with the events of one aggregate after a sequence, oldest first, and returns the
// sequence of the last one; with no events that is after. The events include everything that was
// acknowledged before the call. Load returns fn's error, and an error at an event that cannot be
// read: no decision may be based on an aggregate with a gap.
func (l *Log) Load(
	ctx context.Context, subject string, after uint64, fn func(seq uint64, e domain.Event) error,
) (last uint64, err error) {
	last = after
	deliver := func(m jsapi.Message) error {
		e, _, err := domain.DecodeEvent(m.Data)
		if err != nil {
			return fmt.Errorf("sequence %d: %w", m.Sequence, err)
		}
		if err := fn(m.Sequence, e); err != nil {
			return err
		}
		last = m.Sequence
		return nil
	}
	newest, err := l.api.GetLast(ctx, streams.DirectoryStream, subject)
	switch {
	case errors.Is(err, jsapi.ErrNotFound):
		return after, nil
	case err != nil:
		return after, fmt.Errorf("directory: load %s: %w", subject, err)
	case newest.Sequence <= after:
		return after, nil
	}
	if before, ok := jsapi.ExpectedLast(newest.Header); ok && before == after {
		// Most loads end here: the newest event is the only one after the sequence.
		err = deliver(jsapi.Message{Sequence: newest.Sequence, Data: newest.Data})
	} else {
		err = l.loadRange(ctx, subject, after, newest.Sequence, deliver)
	}
	if err != nil {
		return last, fmt.Errorf("directory: load %s: %w", subject, err)
	}
	return last, nil
}

// loadRange calls deliver once with each message of a subject after one sequence and up to another,
// in order. Any replica of the broker may answer. If that replica is behind, loadRange asks again
// until it has read up to until.
func (l *Log) loadRange(
	ctx context.Context, subject string, after, until uint64, deliver func(jsapi.Message) error,
) error {
	var failed error // the error of deliver, after which nothing is retried
	again := func(error) bool { return failed == nil }
	return jsapi.Retry{If: again}.Do(ctx, func(ctx context.Context) error {
		for after < until {
			msgs, err := l.read(ctx, subject, after+1)
			if err != nil {
				return err
			}
			if len(msgs) == 0 {
				return errBehind
			}
			for _, m := range msgs {
				if failed = deliver(m); failed != nil {
					return failed
				}
				after = m.Sequence
			}
		}
		return nil
	})
}

// errBehind means that the broker's replica that answered does not have all stored events yet.
var errBehind = errors.New("the broker's replica that answered is behind")

// read returns the first messages of a subject from a sequence on, at most loadBatch.
func (l *Log) read(ctx context.Context, subject string, from uint64) ([]jsapi.Message, error) {
	return l.api.GetBatch(ctx, jsapi.BatchRequest{
		Stream: streams.DirectoryStream, From: from, Filter: subject, Messages: loadBatch,
	})
}
