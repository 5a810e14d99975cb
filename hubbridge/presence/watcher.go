package presence

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// compareEvery is the time between comparisons with the broker's list.
	compareEvery = 30 * time.Second
	// queued is how many of the broker's messages may wait: some seconds of every hub of a large
	// shard connecting at once. What is dropped beyond brings a comparison forward.
	queued = 16 << 10
	// busyTick is how often comparisons under way are looked after, idleTick how often it is seen
	// whether one is due.
	busyTick, idleTick = 100 * time.Millisecond, time.Second
	// quiet ends a round: no server has answered for so long. roundLimit ends it whatever happens.
	quiet      = 300 * time.Millisecond
	roundLimit = 5 * time.Second
	// grace is how long the broker's own word about an end is waited for, once the connection is
	// known to be gone: it says why.
	grace = 1500 * time.Millisecond
	// subscribeTimeout is how long the broker may take to take a subscription in.
	subscribeTimeout = 10 * time.Second
	// pageSize is how many connections a server lists at a time.
	pageSize = 1024
)

// Watcher hears the broker about the connections of one shard's hubs.
type Watcher struct {
	sys     *nats.Conn
	account streams.Account
	mine    func(domain.HubID) bool
	view    *View
	observe func(domain.HubID, Observation)
	log     *slog.Logger

	msgs   chan *nats.Msg
	checks chan check
	inbox  string
}

// check is the wish to compare one hub with the broker's list at a time.
type check struct {
	hub domain.HubID
	due time.Time
}

// NewWatcher makes the watcher of shard number shard of as many as shards. It calls observe from
// Run, which must not block.
func NewWatcher(
	sys *nats.Conn, shard, shards int, view *View, observe func(domain.HubID, Observation),
	log *slog.Logger,
) *Watcher {
	return &Watcher{
		sys: sys, account: streams.ShardAccount(shard), view: view, observe: observe, log: log,
		mine:   func(hub domain.HubID) bool { return streams.ShardOf(hub, shards) == shard },
		msgs:   make(chan *nats.Msg, queued),
		checks: make(chan check, 1024),
		inbox:  nats.NewInbox(),
	}
}

// Check asks that a hub be compared with the broker's list after a while. When too many are asked
// for at once some are left to the next comparison of all.
func (w *Watcher) Check(hub domain.HubID, after time.Duration) {
	select {
	case w.checks <- check{hub, time.Now().Add(after)}:
	default:
	}
}

// Run hears the broker until ctx ends, and compares its list with the view at once, every 30 s, and
// when it has lost the broker for a while. It returns ctx's error, or what kept it from
// subscribing. ready is called when it hears the broker.
//
// The broker's events and its answers come over one connection into one channel, so their order is
// the order in which the broker sent them: a list never tells of a time before an event that was
// already passed on.
func (w *Watcher) Run(ctx context.Context, ready func()) error {
	r := &rounds{
		Watcher: w,
		open:    make(map[string]*round),
		due:     make(map[domain.HubID]time.Time),
		ending:  make(map[domain.HubID]ending),
	}
	events := "$SYS.ACCOUNT." + string(w.account) + "."
	for _, subject := range []string{events + "CONNECT", events + "DISCONNECT", w.inbox + ".*"} {
		sub, err := w.sys.ChanSubscribe(subject, w.msgs)
		if err != nil {
			return fmt.Errorf("watch presence of %s: %w", w.account, err)
		}
		// fails only when the connection is gone, and the subscription with it
		defer func() { _ = sub.Unsubscribe() }()
		r.subs = append(r.subs, sub)
	}
	if err := w.sys.FlushTimeout(subscribeTimeout); err != nil {
		w.log.Warn(
			"the subscriptions to the broker's events are not confirmed yet", "account", w.account,
			"error", err,
		)
	}
	ready()
	select {
	case <-w.view.Loaded():
	case <-ctx.Done():
		return ctx.Err()
	}
	back := w.sys.StatusChanged(nats.CONNECTED)
	defer w.sys.RemoveStatusListener(back)
	r.start("", time.Now())
	timer := time.NewTimer(r.pause())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-back:
			r.start("", time.Now()) // nobody listened for a while
			timer.Reset(busyTick)
		case msg := <-w.msgs:
			w.take(r, msg)
		case c := <-w.checks:
			if r.pause() == idleTick {
				timer.Reset(busyTick)
			}
			r.schedule(c)
		case now := <-timer.C:
			r.look(now)
			timer.Reset(r.pause())
		}
	}
}

func (w *Watcher) take(r *rounds, msg *nats.Msg) {
	if token, ok := strings.CutPrefix(msg.Subject, w.inbox+"."); ok {
		r.answer(token, msg, time.Now())
		return
	}
	hub, o, ok := observationOf(msg.Data, strings.HasSuffix(msg.Subject, ".DISCONNECT"))
	if ok && w.mine(hub) {
		w.observe(hub, o)
	}
}
