package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/hubbridge/lease"
	"hubcloud/hubbridge/presence"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
)

// subscribeTimeout is how long the broker may take to take a subscription in.
const subscribeTimeout = 10 * time.Second

// Shard serves the hubs of one shard.
type Shard struct {
	cfg      Config
	msgs     chan *nats.Msg
	troubles rate.Sometimes
	// oddities bounds the lines about what hubs send: any of them can send it all day.
	oddities rate.Sometimes

	mu       sync.Mutex
	sessions map[domain.HubID]*session
	// ready holds the sessions that wait for a worker, in turn.
	ready []*session
	// unsaved holds the sessions whose ledger is to be written at the next tick but one, due those
	// of the next.
	unsaved, due []*session
	bytes        int
	// told is how many bytes the metric was told of; that happens with every tick, and not with
	// every message.
	told    int
	workers int
	// closed says that nothing more is taken in.
	closed bool
	// idle, if not nil, is closed when no worker is left.
	idle chan struct{}

	// work is the workers' context.
	work context.Context
	wait sync.WaitGroup
}

// NewShard makes a shard. It takes observations and messages from then on, and works on them in
// Run.
func NewShard(cfg Config) *Shard {
	return &Shard{
		cfg: cfg, msgs: make(chan *nats.Msg, received),
		troubles: rate.Sometimes{First: 1, Interval: time.Second},
		oddities: rate.Sometimes{First: 1, Interval: time.Second},
		sessions: make(map[domain.HubID]*session),
	}
}

// Run serves the shard until ctx ends: it receives from then on nothing more, finishes what it has
// within three seconds, writes the ledgers and returns nil. When ctx ends with lease.ErrLost it
// drops everything at once, because somebody else may have the shard. Any error means that it could
// not subscribe. ready is called when it receives.
func (sh *Shard) Run(ctx context.Context, ready func()) error {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer sh.wait.Wait()
	defer cancel()
	defer sh.close()
	sh.mu.Lock()
	sh.work = work
	sh.spawn() // for observations that came before
	sh.mu.Unlock()

	// One channel for both subjects: what one connection sends stays in order.
	var subs []*nats.Subscription
	for _, subject := range []string{
		streams.HelloSubject(streams.AnyHub), streams.EventsSubject(streams.AnyHub),
	} {
		sub, err := sh.cfg.Conn.ChanSubscribe(subject, sh.msgs)
		if err != nil {
			return fmt.Errorf("ingest: subscribe %s: %w", subject, err)
		}
		// again at the end of an error's way; otherwise done below
		defer func() { _ = sub.Unsubscribe() }()
		subs = append(subs, sub)
	}
	if err := sh.cfg.Conn.FlushTimeout(subscribeTimeout); err != nil {
		// The connection is lost, and subscribes again when it is back. What hubs said meanwhile
		// had no ack.
		sh.cfg.Log.Warn("a shard's subscriptions are not confirmed yet", "error", err)
	}
	ready()
	sh.receive(ctx, subs)
	for _, sub := range subs {
		// fails only when the connection is gone, and the subscription with it
		_ = sub.Unsubscribe()
	}
	// Without the broker there is nowhere to finish anything: the hubs send again.
	if !errors.Is(context.Cause(ctx), lease.ErrLost) && sh.cfg.Conn.IsConnected() {
		sh.drain()
	}
	return nil
}

// receive sorts messages into queues until ctx ends.
func (sh *Shard) receive(ctx context.Context, subs []*nats.Subscription) {
	ticker := time.NewTicker(max(min(maxLedgerDelay, sh.cfg.Retention/8)/2, 5*time.Millisecond))
	defer ticker.Stop()
	dropped := 0
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-sh.msgs:
			sh.deliver(msg)
		case <-ticker.C:
			sh.save()
			sh.tellInbox()
			dropped = sh.countDropped(subs, dropped)
		}
	}
}

// tellInbox brings the metric of what waits up to date.
func (sh *Shard) tellInbox() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.cfg.Metrics.inbox.Add(float64(sh.bytes - sh.told))
	sh.told = sh.bytes
}

func (sh *Shard) countDropped(subs []*nats.Subscription, before int) int {
	total := 0
	for _, sub := range subs {
		if n, err := sub.Dropped(); err == nil {
			total += n
		}
	}
	sh.cfg.Metrics.dropped.Add(float64(max(total-before, 0)))
	return total
}

// deliver puts a hub's message into its queue, or sheds it.
func (sh *Shard) deliver(msg *nats.Msg) {
	id, topic, _ := strings.Cut(strings.TrimPrefix(msg.Subject, "hub."), ".")
	it := item{kind: kindEvents, data: msg.Data}
	if topic == "hello" {
		it.kind = kindHello
	}
	if len(it.data) > protocol.MaxMessageBytes {
		it.data = nil // too big in any case: what is left of it is unreadable too
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.session(domain.HubID(id))
	if s == nil {
		return
	}
	limit := maxInboxBytes
	if sh.bytes > maxShardBytes {
		limit = fairInboxBytes
	}
	if n := len(s.inbox.items); n >= maxInbox || n > 0 && s.inbox.bytes+len(it.data) > limit {
		sh.cfg.Metrics.shed.Inc()
		return
	}
	sh.bytes += len(it.data)
	s.inbox.push(it)
	sh.schedule(s)
}

// Observe takes what the broker says about a hub's connection. It does not block.
func (sh *Shard) Observe(hub domain.HubID, o presence.Observation) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.session(hub)
	if s == nil || len(s.inbox.items) >= 2*maxInbox {
		// far beyond what can happen within the time of one comparison with the broker's list,
		// which repairs it
		return
	}
	s.inbox.push(item{kind: kindObservation, observation: &o})
	sh.schedule(s)
}

// session gives a hub's session; nil for what is no hub, and when the shard is closed. Needs the
// mutex.
func (sh *Shard) session(hub domain.HubID) *session {
	if s := sh.sessions[hub]; s != nil || sh.closed {
		return s
	}
	hub, ok := domain.ParseHubID(strings.Clone(string(hub)))
	if !ok {
		return nil
	}
	s := &session{shard: sh, hub: hub}
	sh.sessions[hub] = s
	sh.cfg.Metrics.sessions.Inc()
	return s
}

// schedule puts a session with something to do into the ready queue. Needs the mutex.
func (sh *Shard) schedule(s *session) {
	if s.inbox.scheduled || s.inbox.empty() || sh.closed {
		return
	}
	s.inbox.scheduled = true
	sh.ready = append(sh.ready, s)
	sh.spawn()
}

// spawn sees to it that somebody works. Needs the mutex.
func (sh *Shard) spawn() {
	if sh.work == nil || len(sh.ready) == 0 || sh.workers == maxWorkers {
		return
	}
	sh.workers++
	sh.wait.Go(sh.workOff)
}
