package tap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/streams/feed"
)

const (
	// readPause is the pause after a failed read. It doubles up to maxReadPause.
	readPause    = 20 * time.Millisecond
	maxReadPause = 3 * time.Second
	// readWarnEvery is the number of failed reads in a row between two log lines.
	readWarnEvery = 6
)

var (
	// errRetry reports that a read must be repeated although nothing is wrong.
	errRetry = errors.New("not readable yet")
	// errShort reports a log that ends before the position, but not for long enough to count as
	// another log.
	errShort = errors.New("the log ends before the last event that was read; waiting for the rest")
)

// deliveryError is an error of the Output, which ends the tap.
type deliveryError struct{ error }

// Unwrap returns the Output's error.
func (e deliveryError) Unwrap() error { return e.error }

// work advances due hubs, one after the other, until ctx ends or all hubs are done. It returns only
// errors of the Output.
func (t *Tap) work(ctx context.Context) error {
	for h := t.hubs.take(ctx); h != nil; h = t.hubs.take(ctx) {
		err := t.advance(ctx, h)
		var failed deliveryError
		switch {
		case err == nil:
			h.failures = 0
			t.hubs.put(h, false)
		case ctx.Err() != nil:
			t.hubs.put(h, true)
		case errors.As(err, &failed):
			t.hubs.put(h, true)
			return failed.error
		default:
			h.failures++
			if h.failures%readWarnEvery == 0 {
				t.cfg.Logger.Warn(
					"reading a hub log failed; retrying", "hub_id", h.id, "error", err,
				)
			}
			// The hub stays taken until the retry. The worker continues with other hubs.
			time.AfterFunc(
				min(readPause<<min(h.failures-1, 10), maxReadPause), func() { t.hubs.put(h, true) },
			)
		}
	}
	return nil
}

// advance reads one batch after a hub's position, delivers it and advances the position. It uses
// fresh messages of the feed instead of a read where they follow the position.
func (t *Tap) advance(ctx context.Context, h *hub) error {
	connection := t.connection()
	if h.placed && h.comparedOn == connection {
		if fresh := t.hubs.takeFresh(h); len(fresh) > 0 {
			return t.deliver(ctx, h, fresh)
		}
	}
	compare := h.at.Seq > 0 && h.comparedOn != connection
	messages, err := t.fetch(ctx, h, compare)
	if err != nil {
		return err
	}
	if t.connection() != connection {
		return errRetry // the broker may have been restarted or restored meanwhile
	}
	if len(messages) == 0 {
		return t.resolveEmpty(ctx, h)
	}
	if compare && messages[0].Seq == h.at.Seq {
		if !same(messages[0], h.at) {
			return t.replaced(ctx, h)
		}
		messages = messages[1:]
	}
	h.comparedOn, h.short = connection, time.Time{}
	if len(messages) == 0 {
		return t.resolveEmpty(ctx, h)
	}
	return t.deliver(ctx, h, messages)
}

// deliver delivers the messages after a hub's position and advances the position.
func (t *Tap) deliver(ctx context.Context, h *hub, messages []feed.Message) error {
	b := batch{tap: t, hub: h, at: h.at}
	for _, m := range messages {
		if err := b.add(m); err != nil {
			return err
		}
	}
	return b.deliver(ctx)
}

// fetch reads the messages after a hub's position. With compare it starts with the message at the
// position.
func (t *Tap) fetch(ctx context.Context, h *hub, compare bool) ([]feed.Message, error) {
	switch {
	case compare:
		return t.source.Read(ctx, h.id, h.at.Seq, feed.MaxRead)
	case !h.placed && !t.cfg.Since.IsZero():
		return t.source.ReadSince(ctx, h.id, t.cfg.Since, feed.MaxRead)
	default:
		return t.source.Read(ctx, h.id, h.at.Seq+1, feed.MaxRead)
	}
}

// same reports whether m is the message at the position, as far as the position can be compared.
func same(m feed.Message, at feed.DecodedCursor) bool {
	if at.Stored.Equal(unknownTime) {
		return true
	}
	if m.Stored.UnixMilli() != at.Stored.UnixMilli() {
		return false
	}
	return m.Event == nil || at.EpochID.IsZero() || m.Event.EpochID == at.EpochID
}

// viewTries is how often the stream of a log is read for messages that the feed has announced: for
// more than five seconds.
const viewTries = 12

// resolveEmpty handles a read without messages: it finds out whether the log was replaced, ends
// here, or has nothing that is wanted.
func (t *Tap) resolveEmpty(ctx context.Context, h *hub) error {
	known := t.hubs.known(h)
	s, err := t.source.State(ctx, h.id, h.at.Seq)
	if err == nil && s.Last >= h.at.Seq {
		h.short = time.Time{}
	}
	switch {
	case err != nil:
		return err
	case s.Last < h.at.Seq:
		if h.short.IsZero() || s.Last > h.shortEnd {
			h.short, h.shortEnd = time.Now(), s.Last
		}
		patience := t.cfg.ReplacedAfter
		if s.First > s.Last {
			patience *= 10 // without messages, it cannot be read in any case
		}
		if time.Since(h.short) < patience {
			h.comparedOn = 0 // what it has in this place later may be another message
			return errShort
		}
		return t.replaced(ctx, h)
	case s.Last == h.at.Seq && h.failures < viewTries:
		// The messages that the feed announced come into the stream a moment later.
		return errRetry
	case s.Last == h.at.Seq:
		// The log was replaced by an older copy.
		t.hubs.shorten(h, known, s.Last)
		return nil
	case !h.placed && !t.cfg.Since.IsZero() && s.LastStored.Before(t.cfg.Since), s.First > s.Last:
		// Everything has expired or is older than Since.
		b := batch{tap: t, hub: h, at: h.at}
		if err := b.skipTo(s.Last); err != nil {
			return err
		}
		return b.deliver(ctx)
	default:
		return errRetry
	}
}

// replaced reports a log that is not the one read before, and starts over with its oldest message.
func (t *Tap) replaced(ctx context.Context, h *hub) error {
	t.cfg.Logger.Warn(
		"hub log replaced; starting with its oldest event",
		"hub_id", h.id, "read_up_to", h.at.Seq,
	)
	b := batch{tap: t, hub: h, at: h.at}
	if err := b.notice(TypeGap, Gap{Reason: GapReplaced}); err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	h.short = time.Time{}
	t.hubs.displace(h)
	return nil
}

// batch collects the records of one read of a log.
type batch struct {
	tap *Tap
	hub *hub
	// at is the position of the last added message.
	at      feed.DecodedCursor
	records []Record
}

// add adds the record of the next message, and before it those that report a gap or a new log.
func (b *batch) add(m feed.Message) error {
	if err := b.gap(m.Seq); err != nil {
		return err
	}
	former := b.at.EpochID
	b.at.Seq, b.at.Stored = m.Seq, m.Stored
	if m.Hidden {
		return nil
	}
	if m.Event == nil {
		return b.command(m)
	}
	b.at.EpochID = m.Event.EpochID
	if !former.IsZero() && former != m.Event.EpochID {
		begun := LogBegun{Former: former, Current: m.Event.EpochID}
		if err := b.notice(TypeLogBegun, begun); err != nil {
			return err
		}
	}
	if b.tap.wants(m.Event.Type) {
		b.records = append(b.records, eventRecord(b.hub.id, m))
	}
	return nil
}

func (b *batch) command(m feed.Message) error {
	if !b.tap.cfg.Commands {
		return nil
	}
	r, err := commandRecord(b.hub.id, m, b.at)
	if err != nil {
		return fmt.Errorf("hub log of %s: %w", b.hub.id, err)
	}
	b.records = append(b.records, r)
	return nil
}

// gap adds a record that reports the sequences between the position and next as missing, if there
// are any. Only expired messages leave gaps in a stream.
func (b *batch) gap(next uint64) error {
	from := b.at.Seq + 1
	if !b.hub.placed && b.at.Seq == 0 {
		next = b.hub.unread + 1
	}
	if next <= from {
		return nil
	}
	to := next - 1
	b.tap.cfg.Logger.Warn(
		"hub events expired before they were read", "hub_id", b.hub.id, "from", from,
		"to", to,
	)
	return b.notice(TypeGap, Gap{Reason: GapExpired, From: &from, To: &to})
}

// skipTo moves the batch's position to the end of a log without wanted events.
func (b *batch) skipTo(last uint64) error {
	if err := b.gap(last + 1); err != nil {
		return err
	}
	b.at.Seq, b.at.Stored = last, unknownTime
	return nil
}

// notice adds a record of the tap itself.
func (b *batch) notice(typ string, data any) error {
	r, err := notice(b.hub.id, typ, b.at, data)
	if err != nil {
		return err
	}
	b.records = append(b.records, r)
	return nil
}

// deliver writes the records and advances the hub's position.
func (b *batch) deliver(ctx context.Context) error {
	if err := b.write(ctx); err != nil {
		return err
	}
	b.tap.hubs.move(b.hub, b.at)
	return nil
}

func (b *batch) write(ctx context.Context) error {
	if len(b.records) == 0 {
		return nil
	}
	if err := b.tap.cfg.Output.Write(ctx, b.records); err != nil {
		return deliveryError{err}
	}
	return nil
}
