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
	// compareEvery is the time between comparisons with the broker's list. For unrestFor after the
	// servers of the broker have changed it is unrestEvery: not every server may answer at first.
	compareEvery = 30 * time.Second
	unrestEvery  = 3 * time.Second
	unrestFor    = 15 * time.Second
	// listedTwice is the time between two lists that both have a connection whose end is recorded.
	// Then it is open. A server lists a connection for moments after it has reported its end.
	listedTwice = time.Second
	// missingFor is how long a server of a cluster must be out of reach until its connections count
	// as ended. Many are still there when it is back.
	missingFor = 25 * time.Second
	// queueLength is how many of the broker's messages may wait: enough for every hub of a large
	// shard connecting within seconds. Dropped messages bring the next comparison forward.
	queueLength = 16 << 10
	// busyTick is the interval of comparer.tick while comparisons are running or due, idleTick its
	// interval otherwise.
	busyTick, idleTick = 100 * time.Millisecond, time.Second
	// queryQuiet ends a query for lists that no server has answered for that long; queryLimit ends
	// every query.
	queryQuiet = 300 * time.Millisecond
	queryLimit = 5 * time.Second
	// endGrace is how long to wait for the broker's event about the end of a connection that is
	// known to be gone: the event has the reason.
	endGrace = 1500 * time.Millisecond
	// pageSize is how many connections a server lists at a time.
	pageSize = 1024
)

// Watcher follows the connections of one shard's hubs.
type Watcher struct {
	sys     *nats.Conn
	account streams.Account
	inShard func(domain.HubID) bool
	view    *View
	observe func(domain.HubID, Observation)
	// changed returns when the servers of the broker have last changed.
	changed func() time.Time
	logger  *slog.Logger

	msgs     chan *nats.Msg
	requests chan checkRequest
	inbox    string
}

// checkRequest requests a comparison of one hub with the broker's list, at the given time.
type checkRequest struct {
	hub domain.HubID
	at  time.Time
}

// NewWatcher returns the watcher of one of the shards, over a connection to the broker's system
// account. Run calls observe, which must not block. changed returns when the broker's servers, or
// the connections between them, have last changed, so that events may have been lost. A nil logger
// means slog.Default().
func NewWatcher(
	sys *nats.Conn, shard, shards int, view *View, observe func(domain.HubID, Observation),
	changed func() time.Time, logger *slog.Logger,
) *Watcher {
	if logger == nil {
		logger = slog.Default()
	}
	return &Watcher{
		sys:      sys,
		account:  streams.ShardAccount(shard),
		inShard:  func(hub domain.HubID) bool { return streams.ShardOf(hub, shards) == shard },
		view:     view,
		observe:  observe,
		changed:  changed,
		logger:   logger,
		msgs:     make(chan *nats.Msg, queueLength),
		requests: make(chan checkRequest, 1024),
		inbox:    nats.NewInbox(),
	}
}

// Check requests a comparison of a hub with the broker's list after a delay. When too many requests
// wait, Check drops this one: the next comparison of all hubs covers it.
func (w *Watcher) Check(hub domain.HubID, after time.Duration) {
	select {
	case w.requests <- checkRequest{hub, time.Now().Add(after)}:
	default:
	}
}

// Run follows the broker until ctx ends and returns ctx's error, or why it could not subscribe. It
// compares the broker's list with the view at the start, every 30 s, after a lost connection to the
// broker, and every 3 s for a while after the broker's servers have changed. It calls ready once
// the broker has confirmed the subscriptions.
//
// The broker's events and its answers come over one connection into one channel, in the order in
// which the broker sent them: a list is never older than an event that was observed before it.
func (w *Watcher) Run(ctx context.Context, ready func()) error {
	c := &comparer{
		Watcher:   w,
		queries:   make(map[string]*query),
		requested: make(map[domain.HubID]time.Time),
		gone:      make(map[domain.HubID]goneConnection),
		again:     make(map[domain.HubID]goneConnection),
		missing:   make(map[string]missingServer),
	}
	events := "$SYS.ACCOUNT." + string(w.account) + "."
	for _, subject := range []string{events + "CONNECT", events + "DISCONNECT", w.inbox + ".*"} {
		sub, err := w.sys.ChanSubscribe(subject, w.msgs)
		if err != nil {
			return fmt.Errorf("watch presence of %s: %w", w.account, err)
		}
		defer streams.Unsubscribe(sub)
		c.subs = append(c.subs, sub)
	}
	if err := streams.AwaitSubscribed(ctx, w.sys, w.logger); err != nil {
		return err
	}
	ready()
	select {
	case <-w.view.Loaded():
	case <-ctx.Done():
		return ctx.Err()
	}
	reconnected := w.sys.StatusChanged(nats.CONNECTED)
	defer w.sys.RemoveStatusListener(reconnected)
	c.compare("", time.Now())
	timer := time.NewTimer(c.interval())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-reconnected:
			c.compare("", time.Now()) // events were missed
			timer.Reset(busyTick)
		case msg := <-w.msgs:
			w.handle(c, msg)
		case r := <-w.requests:
			if c.interval() == idleTick {
				timer.Reset(busyTick)
			}
			c.request(r)
		case now := <-timer.C:
			c.tick(now)
			timer.Reset(c.interval())
		}
	}
}

// handle handles an answer to a comparison, or an event about a connection.
func (w *Watcher) handle(c *comparer, msg *nats.Msg) {
	if token, ok := strings.CutPrefix(msg.Subject, w.inbox+"."); ok {
		c.handleAnswer(token, msg, time.Now())
		return
	}
	hub, o, ok := observationOf(msg.Data, strings.HasSuffix(msg.Subject, ".DISCONNECT"))
	if ok && w.inShard(hub) {
		w.observe(hub, o)
	}
}
