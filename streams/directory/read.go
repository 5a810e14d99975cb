package directory

import (
	"context"
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// loadBatch is how many events one request of Load asks for.
const loadBatch = 256

// Load gives the events of one aggregate after a sequence, oldest first, and the sequence of the
// last one (after itself when there is none). It is fresh: everything that was acknowledged before
// the call is there. It ends with fn's error, and with an error at an event that cannot be read: an
// aggregate with a hole in it must not be decided upon.
func (l *Log) Load(
	ctx context.Context, subject string, after uint64, fn func(seq uint64, e domain.Event) error,
) (last uint64, err error) {
	last = after
	give := func(m jsapi.Message) error {
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
		// Most loads: a new aggregate of one event, or a known one with one event more.
		err = give(jsapi.Message{Sequence: newest.Sequence, Data: newest.Data})
	} else {
		err = l.loadRange(ctx, subject, after, newest.Sequence, give)
	}
	if err != nil {
		return last, fmt.Errorf("directory: load %s: %w", subject, err)
	}
	return last, nil
}

// loadRange calls give with the messages of a subject after one sequence and up to another, in order
// and once each. Any replica may answer, also one that is behind: it is asked until it has come as
// far as the leader was.
func (l *Log) loadRange(
	ctx context.Context, subject string, after, until uint64, give func(jsapi.Message) error,
) error {
	var failed error // give's, which ends the load
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
				if failed = give(m); failed != nil {
					return failed
				}
				after = m.Sequence
			}
		}
		return nil
	})
}

var errBehind = errors.New("the broker's replica that answered is behind")

// read returns the next messages of a subject from a sequence on, none if there are none.
func (l *Log) read(ctx context.Context, subject string, from uint64) ([]jsapi.Message, error) {
	g, err := l.api.NewBatchGetter(loadBatch)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	err = g.Request(jsapi.BatchRequest{
		Stream: streams.DirectoryStream, From: from, Filter: subject, Messages: loadBatch,
	})
	if err != nil {
		return nil, err
	}
	return g.Collect(ctx)
}
