package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/hubbridge/lease"
	"hubcloud/hubbridge/presence"
	"hubcloud/hubbridge/protocol"
	"hubcloud/streams"
	"hubcloud/streams/shares"
)

// Shard serves the hubs of one shard.
type Shard struct {
	cfg  Config
	msgs chan *nats.Msg
	// checkPresence is Run's check.
	checkPresence func(hub domain.HubID, after time.Duration)
	// storageErrors and protocolWarnings limit the log lines about failed writes and about faulty
	// messages, which any hub can cause all day.
	storageErrors, protocolWarnings rate.Sometimes

	mu   sync.Mutex
	hubs map[domain.HubID]*hubState
	// ready has the hubs that wait for a worker.
	ready *shares.Turns
	// flushes holds the hubs whose checkpoint must be written, each in the list of its tick: the
	// next tick's list is flushes[nextFlush], and the following ticks' come after it, in a circle.
	flushes   [][]*hubState
	nextFlush int
	// bytes is the size of all messages in inboxes.
	bytes int
	// reportedBytes is the value of bytes at the last tick, which the metric shows.
	reportedBytes int
	// workers is the number of workers that handle hubs. spawnWorker starts the goroutine of
	// another one; it is nil before Run.
	workers     int
	spawnWorker func()
	// closed reports whether the shard has stopped receiving.
	closed bool
	// idleWorkers counts the goroutines that are kept for the next worker.
	idleWorkers atomic.Int32
	// idle, if not nil, is closed when no worker handles a hub any more.
	idle chan struct{}
}

// NewShard returns a shard. It accepts observations at once, and handles them during Run.
func NewShard(cfg Config) *Shard {
	delay, tick := checkpointDelay(cfg.Retention)
	if cfg.Faults == nil {
		cfg.Faults = NewFaults(FaultConfig{Now: cfg.Now, Logger: slog.New(slog.DiscardHandler)})
	}
	return &Shard{
		flushes: make([][]*hubState, max(int(delay/tick), 2)),
		cfg:     cfg, msgs: make(chan *nats.Msg, receiveQueue),
		storageErrors:    rate.Sometimes{First: 1, Interval: time.Second},
		protocolWarnings: rate.Sometimes{First: 1, Interval: time.Second},
		hubs:             make(map[domain.HubID]*hubState),
		ready:            cfg.Budget.newTurns(),
	}
}

// Run serves the shard until ctx ends. It calls check to have a hub compared with the broker's list
// of connections after a delay (presence.Watcher). When ctx ends, it receives no more, handles the
// messages that it has received within drainTime, writes the checkpoints and returns nil. When ctx
// ends with lease.ErrLost, Run drops everything at once, because another replica may serve the
// shard. Any error means that Run could not subscribe. It calls ready once the broker has confirmed
// the subscriptions.
func (sh *Shard) Run(
	ctx context.Context, check func(hub domain.HubID, after time.Duration), ready func(),
) error {
	sh.checkPresence = check
	// Workers finish their work after ctx has ended, so their context ends later.
	workCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var workers sync.WaitGroup
	defer workers.Wait()
	defer cancel()
	defer sh.close()
	sh.mu.Lock()
	idle := make(chan struct{})
	sh.spawnWorker = func() {
		select {
		case idle <- struct{}{}:
		default:
			workers.Go(func() { sh.runWorkers(workCtx, idle) })
		}
	}
	sh.startWorker() // for observations that came before Run
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
		// For the returns with an error. Otherwise the subscription has ended below.
		defer streams.Unsubscribe(sub)
		subs = append(subs, sub)
	}
	if streams.AwaitSubscribed(ctx, sh.cfg.Conn, sh.cfg.Logger) == nil {
		ready()
		sh.askAgain()
		sh.receive(ctx, subs)
	}
	for _, sub := range subs {
		streams.Unsubscribe(sub)
	}
	// Without the broker nothing can be stored: the hubs send again.
	if !errors.Is(context.Cause(ctx), lease.ErrLost) && sh.cfg.Conn.IsConnected() {
		sh.drain(workCtx)
	}
	return nil
}

// receive puts messages into inboxes until ctx ends.
func (sh *Shard) receive(ctx context.Context, subs []*nats.Subscription) {
	_, tick := checkpointDelay(sh.cfg.Retention)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	dropped := 0
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-sh.msgs:
			sh.enqueue(msg)
		case <-ticker.C:
			sh.flushDue()
			sh.reportInbox()
			dropped = sh.countDropped(subs, dropped)
		}
	}
}

// askAgain makes hubs send again what they have sent before the shard received.
func (sh *Shard) askAgain() {
	if sh.cfg.Waiting == nil {
		return
	}
	waiting := sh.cfg.Waiting()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for _, hub := range waiting {
		if s := sh.stateOf(hub); s != nil && s.inbox.empty() {
			s.inbox.push(item{kind: kindRepeatAck})
			sh.schedule(s)
		}
	}
}

// checkpointDelay returns how long a hub's checkpoint may be behind its log, and the interval of
// the ticks at which checkpoints are written.
func checkpointDelay(retention time.Duration) (delay, tick time.Duration) {
	delay = min(maxCheckpointDelay, retention/8)
	return delay, max(min(maxCheckpointTick, delay/16), time.Millisecond)
}

// reportInbox updates the metric of the bytes in inboxes, and reports who waits because of what it has
// sent.
func (sh *Shard) reportInbox() {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.workers == maxWorkers {
		sh.ready.HeldBackWaiting()
	}
	sh.cfg.Metrics.inbox.Add(float64(sh.bytes - sh.reportedBytes))
	sh.reportedBytes = sh.bytes
}

// countDropped counts the messages that the client of the broker has dropped since the total
// before, and returns the new total.
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

// enqueue puts a hub's message into the hub's inbox, or drops it when the inbox is full.
func (sh *Shard) enqueue(msg *nats.Msg) {
	hub, topic := streams.ParseHubSubject(msg.Subject)
	it := item{kind: kindEvents, data: msg.Data}
	if topic == "hello" {
		it.kind = kindHello
	}
	if len(it.data) > protocol.MaxMessageBytes {
		it.data = nil // it is unreadable either way, and the empty one needs no space
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.stateOf(hub)
	if s == nil {
		return
	}
	limit := maxInboxBytes
	if sh.bytes > maxShardBytes {
		limit = fairInboxBytes
	}
	if !sh.cfg.Budget.allowMessage(hub) {
		sh.cfg.Metrics.shed.Inc()
		sh.cfg.Faults.Report(hub, FaultTooMuchData, fmt.Sprintf("more than %d messages a second", hubMessages))
		return
	}
	if n := len(s.inbox.items); n >= maxInbox || n > 0 && s.inbox.bytes+len(it.data) > limit {
		sh.cfg.Metrics.shed.Inc()
		return
	}
	sh.bytes += len(it.data)
	s.inbox.push(it)
	sh.schedule(s)
}

// Observe queues an observation of one of a hub's connections. It does not block.
func (sh *Shard) Observe(hub domain.HubID, o presence.Observation) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	s := sh.stateOf(hub)
	if s == nil || len(s.inbox.items) >= 2*maxInbox {
		// Far more observations than occur between two comparisons with the broker's list. The next
		// comparison makes up for the dropped one.
		return
	}
	s.inbox.push(item{kind: kindObservation, observation: &o})
	sh.schedule(s)
}

// stateOf returns a hub's state, created if necessary; nil when hub is not a hub's id, or the shard
// is closed and has no state of the hub. The caller must hold the mutex.
func (sh *Shard) stateOf(hub domain.HubID) *hubState {
	if s := sh.hubs[hub]; s != nil || sh.closed {
		return s
	}
	hub, ok := domain.ParseHubID(strings.Clone(string(hub)))
	if !ok {
		return nil
	}
	s := &hubState{shard: sh, hub: hub}
	sh.hubs[hub] = s
	sh.cfg.Metrics.sessions.Inc()
	return s
}

// schedule puts a hub with work into the ready queue. The caller must hold the mutex.
func (sh *Shard) schedule(s *hubState) {
	if s.inbox.scheduled || s.inbox.empty() || sh.closed {
		return
	}
	s.inbox.scheduled = true
	owner, _ := sh.cfg.Ownership.Hub(s.hub)
	sh.ready.Add(shares.Spender{Org: owner.OrgID, ID: string(s.hub)}, false)
	sh.startWorker()
}

// startWorker starts a worker if one more is needed. The caller must hold the mutex.
func (sh *Shard) startWorker() {
	if sh.spawnWorker == nil || !sh.ready.Waiting() || sh.workers == maxWorkers {
		return
	}
	sh.workers++
	sh.spawnWorker()
}
