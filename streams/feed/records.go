package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

const (
	// readPause is the first pause between attempts at a read; it doubles up to maxReadPause. All
	// attempts together take at most readPatience.
	readPause    = 20 * time.Millisecond
	maxReadPause = 500 * time.Millisecond
	// readTries is how many failures that are not temporary end a read.
	readTries = 4
)

// errBehind means that neither the stream nor the journal has returned what the log has.
var errBehind = fmt.Errorf("%w: a copy of the log lacks what the log has", jsapi.ErrUnconfirmed)

// records reads a log's records from the sequence from up to to, or as far as one answer reaches.
// Everything up to to must have been stored. It returns at least one record; the first ones may
// have expired. The error is a *goneError when all have.
//
// The records come from the hub's stream. Any copy of it may answer, may be behind the journal, and
// may be damaged or away: then they come from the journal.
func (l *Logs) records(
	ctx context.Context, hub domain.HubID, from, to uint64,
) ([]stored, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	failures := 0
	streamOnly := false
	for pause := readPause; ; pause = min(2*pause, maxReadPause) {
		messages, err := l.streamed(ctx, hub, from, to, streamOnly)
		if len(messages) > 0 && messages[0].seq == from {
			return messages, nil
		}
		journaled, journalErr := l.journaled(ctx, hub, from, to)
		streamOnly = errors.Is(journalErr, journal.ErrGone)
		switch {
		case len(journaled) > 0:
			return journaled, nil
		case err == nil && streamOnly:
			err = l.confirmExpired(ctx, hub, messages, to)
		case errors.Is(journalErr, errOutlived):
			err = &goneError{to + 1}
		default:
			err = errors.Join(err, journalErr)
		}
		var gone *goneError
		switch {
		case err == nil:
			return messages, nil
		case errors.As(err, &gone), errors.Is(err, ErrEpochEnded):
			return nil, err
		case !jsapi.IsTemporary(err):
			failures++
		}
		if failures == readTries || !streams.Sleep(ctx, pause) {
			return nil, fmt.Errorf(
				"read the log of %s from sequence %d to %d: %w", hub, from, to, err,
			)
		}
	}
}

// allRecords reads a log's records from the sequence from up to to, with as many answers as it
// takes. It is otherwise as records.
func (l *Logs) allRecords(
	ctx context.Context, hub domain.HubID, from, to uint64,
) (all []stored, err error) {
	for next := from; next <= to; next = all[len(all)-1].seq + 1 {
		records, err := l.records(ctx, hub, next, to)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

// streamed reads records from the hub's stream, as many as one answer has without a gap. It gives a
// silent stream up soon, unless only the stream can have the records.
func (l *Logs) streamed(
	ctx context.Context, hub domain.HubID, from, to uint64, streamOnly bool,
) (messages []stored, err error) {
	get := func(ctx context.Context) error {
		messages, err = l.shard(hub).get(ctx, hub, jsapi.BatchRequest{
			From: from, Messages: int(min(to-from+1, maxGet)), Bytes: loadBytes,
		})
		return err
	}
	if streamOnly {
		err = get(ctx)
	} else {
		err = l.askStream(ctx, hub, get)
	}
	l.metrics.read.Add(float64(len(messages)))
	return lastRun(messages, to), err
}

// errOutlived reports that the journal has the records, and that all are older than the retention.
var errOutlived = fmt.Errorf("%w: they are older than the retention", journal.ErrGone)

// journaled reads records from the journal. The first ones may have expired: the journal keeps them
// for somewhat longer than the retention. The error is journal.ErrGone if the journal does not have
// the first one, errOutlived if all have expired.
func (l *Logs) journaled(
	ctx context.Context, hub domain.HubID, from, to uint64,
) ([]stored, error) {
	for from <= to {
		records, err := l.cfg.Journal.Records(ctx, hub, from, to, loadBytes)
		if err != nil {
			return nil, err
		}
		if len(records) == 0 {
			return nil, journal.ErrGone
		}
		from = records[len(records)-1].Seq + 1
		for len(records) > 0 && l.cfg.Now().Sub(records[0].Time) > l.cfg.Retention {
			records = records[1:]
		}
		if len(records) == 0 {
			continue
		}
		l.metrics.fromJournal.Add(float64(len(records)))
		messages := make([]stored, len(records))
		for i := range records {
			messages[i] = storedRecord(&records[i])
		}
		return messages, nil
	}
	return nil, errOutlived
}

// lastRun returns the last messages up to the sequence to, as many as have no gap between them.
func lastRun(messages []stored, to uint64) []stored {
	start := 0
	for i := range messages {
		if messages[i].seq > to {
			return messages[start:i]
		}
		if i > 0 && messages[i].seq != messages[i-1].seq+1 {
			start = i
		}
	}
	return messages[start:]
}

// confirmExpired asks the stream's leader whether the messages before those given, which reach up
// to the sequence to or are none, have expired. It returns nil if they have, a *goneError if
// everything up to to has, ErrEpochEnded if the journal has lost them, and errBehind otherwise: the
// copy that answered lacks them. An empty answer proves nothing by itself: the copy may be behind,
// or the broker out of reach.
func (l *Logs) confirmExpired(
	ctx context.Context, hub domain.HubID, messages []stored, to uint64,
) error {
	b, err := l.bounds(ctx, hub)
	if err == nil && b.last < to {
		b.last, err = l.endAtLeast(ctx, hub, to)
	}
	switch {
	case err != nil:
		return err
	case b.last < to:
		return ErrEpochEnded
	case b.first > to:
		return &goneError{b.first}
	case len(messages) > 0 && b.first >= messages[0].seq:
		return nil
	default:
		return errBehind
	}
}
