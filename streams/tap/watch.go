package tap

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
)

const (
	// feedRoom and feedRoomBytes are how much of a feed may wait; what comes when it is full is
	// lost, and found by listing the logs.
	feedRoom      = 1 << 18
	feedRoomBytes = 64 << 20
	// watchPause is how often the tap looks whether it may have missed something.
	watchPause = 500 * time.Millisecond
	// listPause is the pause between two listings of all logs when nothing seems to have been
	// missed; it is at least listShare times as long as the last one took, so that listing costs
	// the broker little whatever their number.
	listPause = 30 * time.Second
	listShare = 20
	// listComplaint is how many failed listings in a row the log hears of once.
	listComplaint = 20
	// listTimeout bounds the listing of one shard.
	listTimeout = 30 * time.Second
)

// feeds are the subscriptions that say which hub has something.
type feeds []*nats.Subscription

// subscribe begins to hear of what is stored from now on.
func (t *Tap) subscribe() (feeds, error) {
	if !t.cfg.Follow {
		return nil, nil
	}
	subjects := []string{streams.AnyFeed}
	if len(t.cfg.Hubs) > 0 {
		subjects = subjects[:0]
		for _, id := range t.cfg.Hubs {
			subjects = append(subjects, streams.FeedDestination(id))
		}
	}
	var all feeds
	for _, subject := range subjects {
		sub, err := t.cfg.Conn.Subscribe(subject, t.hear)
		if err == nil {
			all = append(all, sub)
			err = sub.SetPendingLimits(feedRoom, feedRoomBytes)
		}
		if err != nil {
			all.end()
			return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
		}
	}
	return all, nil
}

func (f feeds) end() {
	for _, sub := range f {
		_ = sub.Unsubscribe() // it fails only with the connection, which ends it too
	}
}

// dropped is how many messages came when there was no room for them.
func (f feeds) dropped() (all int) {
	for _, sub := range f {
		if n, err := sub.Dropped(); err == nil {
			all += n
		}
	}
	return all
}

// hear takes a message of the feed: it says whose log has got how far.
func (t *Tap) hear(msg *nats.Msg) {
	id, m, certain, err := hublog.Fed(msg)
	if err != nil {
		t.cfg.Log.Warn("unreadable message in the feed", "error", err)
		return
	}
	if _, ok := domain.ParseHubID(string(id)); ok && t.chose(id) {
		t.hubs.announce(id, m, certain)
	}
}

// watch lists the logs at the beginning, and again whenever something of the feed may have been
// missed, until ctx ends.
func (t *Tap) watch(ctx context.Context, heard feeds) error {
	ticker := time.NewTicker(watchPause)
	defer ticker.Stop()
	var epoch uint64
	var dropped, failures int
	var next time.Time
	for {
		if t.cfg.Conn.IsClosed() {
			return ErrRefused
		}
		nowEpoch, nowDropped := t.epoch(), heard.dropped()
		if nowEpoch != epoch || nowDropped != dropped || t.cfg.Follow && time.Now().After(next) {
			began := time.Now()
			err := t.list(ctx)
			if err == nil {
				t.listed = true
				epoch, dropped, failures = nowEpoch, nowDropped, 0
				next = time.Now().Add(max(listPause, listShare*time.Since(began)))
			} else if failures++; ctx.Err() == nil && failures%listComplaint == 1 {
				t.cfg.Log.Warn("the hub logs cannot be listed; trying again", "error", err)
			}
			if err == nil || t.cfg.Follow && errors.Is(err, hublog.ErrIncomplete) {
				// a log without a leader comes when it has one, but a tap that is to end must not
				// end without it
				t.hubs.openUp()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// list asks the broker what every log holds.
func (t *Tap) list(ctx context.Context) error {
	found := func(id domain.HubID, s hublog.State) {
		if t.chose(id) {
			t.hubs.listed(id, s, t.place(s))
		}
	}
	if t.chosen != nil {
		for id := range t.chosen {
			s, err := t.source.State(ctx, id, 0)
			if err != nil {
				return err
			}
			found(id, s)
		}
		return nil
	}
	var incomplete error
	for shard := range t.cfg.Shards {
		within, cancel := context.WithTimeout(ctx, listTimeout)
		err := t.source.List(within, shard, found)
		cancel()
		switch {
		case errors.Is(err, hublog.ErrIncomplete):
			incomplete = errors.Join(incomplete, err)
		case err != nil:
			return err
		}
	}
	return incomplete
}

// place finds where to begin with a log that was seen to hold s, for a hub without a position. It
// gives it one where nothing of the log is wanted.
func (t *Tap) place(s hublog.State) func(*hub) {
	return func(h *hub) {
		switch {
		case s.Last == 0:
		case t.cfg.New && !t.listed, !t.cfg.Since.IsZero() && s.LastStored.Before(t.cfg.Since):
			h.at, h.placed = hublog.Position{
				Incarnation: hublog.NoIncarnation,
				Seq:         s.Last,
				Stored:      s.LastStored,
			}, true
		case !t.cfg.Since.IsZero():
			if s.First > 1 && s.Retention > 0 && time.Since(t.cfg.Since) > s.Retention {
				h.unread = s.First - 1 // some of it was stored since then, as far as anybody knows
			}
		case t.resumed:
			// the log came after the checkpoint: its first message is the first that is wanted
			h.at, h.placed = beforeAll(0), true
		default:
			h.at, h.placed = beforeAll(s.First-1), true
		}
	}
}

// beforeAll is a position behind a sequence of which nothing is known, as it has no message (any
// more).
func beforeAll(seq uint64) hublog.Position {
	return hublog.Position{Incarnation: hublog.NoIncarnation, Seq: seq, Stored: time.UnixMilli(0)}
}
