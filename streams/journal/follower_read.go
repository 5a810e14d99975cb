package journal

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// read reads commits from the journal, and delivers them, until those up to a sequence are
// delivered or have expired. Any replica may answer.
func (f *Follower) read(ctx context.Context, getter *jsapi.BatchGetter, upTo uint64) error {
	warned := false
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		position := f.Position()
		if position >= upTo {
			return nil
		}
		err := f.readBatch(ctx, getter, position+1, upTo)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrUnreadable), errors.Is(err, nats.ErrConnectionClosed):
			return err
		case err == nil:
			pause, warned = firstPause, false
			continue
		case !warned:
			f.journal.cfg.Logger.Warn(
				"journal not read; trying again", "group", f.group, "position", position,
				"error", err,
			)
			warned = true
		}
		if !streams.Sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// readBatch delivers at least one commit, or reports expired ones, or returns an error.
func (f *Follower) readBatch(
	ctx context.Context, getter *jsapi.BatchGetter, from, upTo uint64,
) error {
	tryCtx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	msgs, err := getter.Get(tryCtx, jsapi.BatchRequest{
		Stream: streams.JournalStream(f.group), From: from,
		Messages: int(min(upTo-from+1, readMessages)), Bytes: readBytes, Bare: true,
	})
	if err != nil {
		return err
	}
	if len(msgs) == 0 || msgs[0].Sequence != from {
		return f.readNext(tryCtx, from)
	}
	var commits []Commit
	for i, msg := range msgs {
		if msg.Sequence != from+uint64(i) {
			break // those between are lost, or the replica does not have them
		}
		c, err := unmarshalAt(msg.Sequence, msg.Data)
		if err != nil {
			return err
		}
		commits = append(commits, c)
	}
	f.pass(commits)
	return nil
}

// readNext delivers the commit with a sequence that a replica did not have: from the journal's
// leader, unless it has expired.
func (f *Follower) readNext(ctx context.Context, seq uint64) error {
	stream := streams.JournalStream(f.group)
	info, err := f.journal.api.ConfirmedInfo(ctx, stream, seq)
	if err != nil {
		return err
	}
	if first := info.State.FirstSeq; first > seq {
		// A follower that begins with the journal has missed nothing: it has never been there.
		if from := max(seq, f.passed+1); from < first && (seq > 1 || f.passed > 0) {
			f.journal.cfg.Logger.Warn("commits expired before they were read",
				"group", f.group, "from", from, "to", first-1)
			f.journal.metrics.missing.Add(float64(first - from))
		}
		if first-1 > f.passed {
			f.missing(max(seq, f.passed+1), first-1)
		}
		f.advance(first - 1)
		return nil
	}
	msg, err := f.journal.api.Get(ctx, stream, seq)
	if errors.Is(err, jsapi.ErrNotFound) && seq <= info.State.LastSeq {
		return f.skipLost(ctx, seq, info.State.LastSeq)
	}
	if err != nil {
		return err
	}
	c, err := unmarshalAt(seq, msg.Data)
	if err != nil {
		return err
	}
	f.lostTries = 0
	f.pass([]Commit{c})
	return nil
}
