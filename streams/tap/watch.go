package tap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/jsapi"
)

const (
	// feedBuffer (messages) and feedBufferBytes limit the messages of a subscription that wait to
	// be handled. Beyond them messages are dropped, and found by listing the logs.
	feedBuffer      = 1 << 18
	feedBufferBytes = 64 << 20
	// watchPause is the pause between two checks for missed messages.
	watchPause = 500 * time.Millisecond
	// listPause is the pause between two listings of all logs if no message was missed. It is at
	// least listShare times the duration of the last listing, which bounds the load on the broker.
	listPause = 30 * time.Second
	listShare = 20
	// listWarnEvery is the number of failed listings in a row between two log lines.
	listWarnEvery = 20
	// completeTry is how long one request to complete the logs of a shard may take.
	completeTry = 5 * time.Second
	// listTimeout limits the listing of one shard.
	listTimeout = 30 * time.Second
)

// feeds are subscriptions to the feed.
type feeds []*nats.Subscription

// subscribe subscribes to the feed of the selected hubs. Without Follow it does nothing.
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
		sub, err := t.cfg.Conn.Subscribe(subject, t.handle)
		if err == nil {
			all = append(all, sub)
			err = sub.SetPendingLimits(feedBuffer, feedBufferBytes)
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
		streams.Unsubscribe(sub)
	}
}

// dropped returns the number of messages that did not fit into the buffers.
func (f feeds) dropped() (all int) {
	for _, sub := range f {
		if n, err := sub.Dropped(); err == nil {
			all += n
		}
	}
	return all
}

// handle records a message of the feed.
func (t *Tap) handle(msg *nats.Msg) {
	id, m, err := feed.ParseFeed(msg)
	if err != nil {
		t.cfg.Logger.Warn("unreadable message in the feed", "error", err)
		return
	}
	if _, ok := domain.ParseHubID(string(id)); ok && t.chose(id) {
		t.hubs.announce(id, m)
	}
}

// watch lists the logs at the start, and again whenever messages of the feed may have been missed,
// until ctx ends. It returns ErrRejected if the connection was closed for that reason.
func (t *Tap) watch(ctx context.Context, subs feeds) error {
	ticker := time.NewTicker(watchPause)
	defer ticker.Stop()
	if !t.cfg.Follow {
		t.complete(ctx)
	}
	var connection uint64
	var dropped, failures int
	var next time.Time
	for {
		if t.cfg.Conn.IsClosed() {
			return ErrRejected
		}
		nowConnection, nowDropped := t.connection(), subs.dropped()
		if nowConnection != connection || nowDropped != dropped ||
			t.cfg.Follow && time.Now().After(next) {
			began := time.Now()
			err := t.list(ctx)
			if err == nil {
				t.listed = true
				connection, dropped, failures = nowConnection, nowDropped, 0
				next = time.Now().Add(max(listPause, listShare*time.Since(began)))
			} else if failures++; ctx.Err() == nil && failures%listWarnEvery == 1 {
				t.cfg.Logger.Warn("listing hub logs failed; retrying", "error", err)
			}
			if err == nil || t.cfg.Follow && errors.Is(err, feed.ErrIncomplete) {
				// A log without a leader is listed once it has one. Only a tap that follows may
				// start without it: the others would end without its events.
				t.hubs.start()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// complete has the logs of all shards completed, so that a tap that does not follow gets everything
// that was stored at its start. The service writes new records to the logs up to some seconds later.
// While it does not run, nothing is added to them: after jsapi.Patience the tap reads what they have.
func (t *Tap) complete(ctx context.Context) {
	policy := jsapi.Retry{Try: completeTry, If: func(error) bool { return true }}
	var shards sync.WaitGroup
	for shard := range t.cfg.Shards {
		shards.Go(func() {
			err := errors.New("not asked yet")
			for err != nil && ctx.Err() == nil && !errors.Is(err, nats.ErrNoResponders) {
				err = policy.Do(ctx, func(ctx context.Context) error {
					return t.source.Complete(ctx, shard)
				})
				if err != nil && ctx.Err() == nil {
					t.cfg.Logger.Warn("hub logs lack events of the last seconds", "error", err)
				}
			}
		})
	}
	shards.Wait()
}

// list reads the state of every selected log. It returns feed.ErrIncomplete if some logs have no
// leader.
func (t *Tap) list(ctx context.Context) error {
	found := func(id domain.HubID, s feed.State) {
		if t.chose(id) {
			t.hubs.update(id, s, t.place(s))
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
		listCtx, cancel := context.WithTimeout(ctx, listTimeout)
		err := t.source.List(listCtx, shard, found)
		cancel()
		switch {
		case errors.Is(err, feed.ErrIncomplete):
			incomplete = errors.Join(incomplete, err)
		case err != nil:
			return err
		}
	}
	return incomplete
}

// place returns a function that sets the first position of a hub whose log has the state s. It sets
// none where the position must be found by reading since a time.
func (t *Tap) place(s feed.State) func(*hub) {
	return func(h *hub) {
		switch {
		case s.Last == 0:
		case t.cfg.New && !t.listed, !t.cfg.Since.IsZero() && s.LastStored.Before(t.cfg.Since):
			h.at, h.placed = beforeAll(s.Last), true
		case !t.cfg.Since.IsZero():
			if s.First > 1 && s.Retention > 0 && time.Since(t.cfg.Since) > s.Retention {
				h.unread = s.First - 1 // some of the expired events may have been stored since then
			}
		case t.resumed:
			// The log is newer than the checkpoint: start before its first message.
			h.at, h.placed = beforeAll(0), true
		default:
			h.at, h.placed = beforeAll(s.First-1), true
		}
	}
}

// unknownTime is the time of a position whose message was not read, so that it cannot be compared.
var unknownTime = time.UnixMilli(0)

// beforeAll returns a position at a sequence whose message was not read.
func beforeAll(seq uint64) feed.DecodedCursor {
	return feed.DecodedCursor{Seq: seq, Stored: unknownTime}
}
