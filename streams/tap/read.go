package tap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/streams/hublog"
)

const (
	// readPause is the pause before a read that failed is tried again; it doubles up to
	// maxReadPause.
	readPause    = 20 * time.Millisecond
	maxReadPause = 3 * time.Second
	// readComplaint is after how many failures in a row the log hears of it.
	readComplaint = 6
)

// errAgain says that a read has to be made again: nothing is wrong.
var errAgain = errors.New("not there yet")

// deliveryError says that the Output failed, which ends the tap.
type deliveryError struct{ error }

// Unwrap gives what the Output said.
func (e deliveryError) Unwrap() error { return e.error }

// work takes hubs that are due, one after the other, until ctx ends or nothing is due any more.
func (t *Tap) work(ctx context.Context) error {
	for h := t.hubs.take(ctx); h != nil; h = t.hubs.take(ctx) {
		err := t.advance(ctx, h)
		var failed deliveryError
		switch {
		case err == nil:
			h.failures = 0
			t.hubs.give(h, false)
		case ctx.Err() != nil:
			t.hubs.give(h, true)
		case errors.As(err, &failed):
			t.hubs.give(h, true)
			return failed.error
		default:
			h.failures++
			if h.failures%readComplaint == 0 {
				t.cfg.Log.Warn(
					"a hub's log cannot be read; trying again", "hub_id", h.id, "error", err,
				)
			}
			// The hub stays this worker's until then, which goes on with others.
			time.AfterFunc(
				min(readPause<<min(h.failures-1, 10), maxReadPause),
				func() { t.hubs.give(h, true) },
			)
		}
	}
	return nil
}

// advance reads one batch behind a hub's position, delivers it, and moves the position. What came
// through the feed, is certain and follows the position at once needs no reading.
func (t *Tap) advance(ctx context.Context, h *hub) error {
	epoch := t.epoch()
	if h.placed && h.epoch == epoch {
		if fresh := t.hubs.takeFresh(h); len(fresh) > 0 {
			return t.give(ctx, h, fresh)
		}
	}
	compare := h.at.Seq > 0 && h.epoch != epoch
	messages, err := t.fetch(ctx, h, compare)
	if err != nil {
		return err
	}
	if t.epoch() != epoch {
		return errAgain // the broker may be another by now
	}
	if len(messages) == 0 {
		return t.look(ctx, h)
	}
	if compare && messages[0].Seq == h.at.Seq {
		if !same(messages[0], h.at) {
			return t.replaced(ctx, h)
		}
		messages = messages[1:]
	}
	h.epoch = epoch
	if len(messages) == 0 {
		return t.look(ctx, h)
	}
	return t.give(ctx, h, messages)
}

// give delivers what follows a hub's position, and moves it.
func (t *Tap) give(ctx context.Context, h *hub, messages []hublog.Message) error {
	b := batch{tap: t, hub: h, at: h.at}
	for _, m := range messages {
		if err := b.add(m); err != nil {
			return err
		}
	}
	return b.deliver(ctx)
}

// fetch reads behind a hub's position, or from the message at it on.
func (t *Tap) fetch(ctx context.Context, h *hub, compare bool) ([]hublog.Message, error) {
	switch {
	case compare:
		return t.source.Read(ctx, h.id, h.at.Seq, hublog.MaxRead)
	case !h.placed && !t.cfg.Since.IsZero():
		return t.source.ReadSince(ctx, h.id, t.cfg.Since, hublog.MaxRead)
	default:
		return t.source.Read(ctx, h.id, h.at.Seq+1, hublog.MaxRead)
	}
}

// same says whether a message is the one that a position was made of.
func same(m hublog.Message, at hublog.Position) bool {
	if m.Stored.UnixMilli() != at.Stored.UnixMilli() {
		return false
	}
	return m.Event == nil || at.Incarnation == hublog.NoIncarnation ||
		m.Event.Incarnation == at.Incarnation
}

// look finds out why there was nothing to read.
func (t *Tap) look(ctx context.Context, h *hub) error {
	known := t.hubs.known(h)
	s, err := t.source.State(ctx, h.id, h.at.Seq)
	switch {
	case err != nil:
		return err
	case s.Last < h.at.Seq:
		return t.replaced(ctx, h)
	case s.Last == h.at.Seq:
		// What was announced beyond it was never stored: the broker ended in the midst of a batch.
		t.hubs.ends(h, known, s.Last)
		return nil
	case !h.placed && !t.cfg.Since.IsZero() && s.LastStored.Before(t.cfg.Since), s.First > s.Last:
		// Everything is older than what is wanted, or has expired.
		b := batch{tap: t, hub: h, at: h.at}
		if err := b.skipTo(s.Last, s.LastStored); err != nil {
			return err
		}
		return b.deliver(ctx)
	default:
		return errAgain
	}
}

// replaced tells that the log is another than the one that was read, and begins with its oldest
// message.
func (t *Tap) replaced(ctx context.Context, h *hub) error {
	t.cfg.Log.Warn(
		"a hub's log is not the one that was read before: beginning with its oldest event",
		"hub_id", h.id, "read_up_to", h.at.Seq,
	)
	b := batch{tap: t, hub: h, at: h.at}
	if err := b.tell(TypeGap, Gap{Reason: GapReplaced}); err != nil {
		return err
	}
	if err := b.write(ctx); err != nil {
		return err
	}
	t.hubs.displace(h)
	return nil
}

// batch is what one read of a log gives.
type batch struct {
	tap *Tap
	hub *hub
	// at is the position behind what was added.
	at      hublog.Position
	records []Record
}

// add takes the next message, and tells what lies between it and the one before.
func (b *batch) add(m hublog.Message) error {
	if err := b.hole(m.Seq); err != nil {
		return err
	}
	former := b.at.Incarnation
	b.at.Seq, b.at.Stored = m.Seq, m.Stored
	if b.at.Incarnation == "" {
		b.at.Incarnation = hublog.NoIncarnation
	}
	if m.Event == nil {
		return b.command(m)
	}
	b.at.Incarnation = m.Event.Incarnation
	if former != "" && former != hublog.NoIncarnation && former != m.Event.Incarnation {
		if err := b.tell(TypeLogBegun, LogBegun{
			Former: former, Log: m.Event.Incarnation,
		}); err != nil {
			return err
		}
	}
	if b.tap.wants(m.Event.Type) {
		b.records = append(b.records, eventRecord(b.hub.id, m))
	}
	return nil
}

func (b *batch) command(m hublog.Message) error {
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

// hole tells what is missing before the sequence next: streams have no holes but those that expired
// messages leave.
func (b *batch) hole(next uint64) error {
	from := b.at.Seq + 1
	if !b.hub.placed && b.at.Seq == 0 {
		next = b.hub.unread + 1
	}
	if next <= from {
		return nil
	}
	to := next - 1
	b.tap.cfg.Log.Warn(
		"events of a hub have expired before they were read", "hub_id", b.hub.id, "from", from,
		"to", to,
	)
	return b.tell(TypeGap, Gap{Reason: GapExpired, From: &from, To: &to})
}

// skipTo moves on to the end of a log of which nothing is left that is wanted.
func (b *batch) skipTo(last uint64, stored time.Time) error {
	if err := b.hole(last + 1); err != nil {
		return err
	}
	if b.at.Incarnation == "" {
		b.at.Incarnation = hublog.NoIncarnation
	}
	b.at.Seq, b.at.Stored = last, stored
	return nil
}

// tell adds a record of the tap's own.
func (b *batch) tell(typ string, data any) error {
	r, err := notice(b.hub.id, typ, b.at, data)
	if err != nil {
		return err
	}
	b.records = append(b.records, r)
	return nil
}

// deliver hands the records on and moves the position.
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
