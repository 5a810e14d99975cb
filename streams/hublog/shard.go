package hublog

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
)

const (
	// feedRoom is how many messages of a shard's feed may wait. What comes when it is full is lost
	// and read from the log.
	feedRoom = 4096
	// feedDrain is the most messages that are dealt with before their readers are woken.
	feedDrain = 256
)

// shard is what the logs of one account of the broker share: its connections, the feed of its
// tails, and who reads history.
type shard struct {
	logs *Logs
	nc   *nats.Conn
	js   jetstream.JetStream
	// lanes are for direct gets, on a connection of their own.
	lanes lanes
	// loads has one entry for each load of history that is under way.
	loads chan struct{}

	// feed is where the subscriptions of all tails end.
	feed chan *nats.Msg
	// suspect says that messages of the feed may have been lost without a trace.
	suspect atomic.Bool
	// reconnects is how often nc had reconnected at the last sweep.
	reconnects uint64

	mu     sync.Mutex
	closed bool
	tails  map[domain.HubID]*tail
}

func newShard(l *Logs, nc, reads *nats.Conn) (*shard, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("hub logs: %w", err)
	}
	s := &shard{
		logs:  l,
		nc:    nc,
		js:    js,
		feed:  make(chan *nats.Msg, feedRoom),
		tails: map[domain.HubID]*tail{},
		loads: make(chan struct{}, maxShardLoads),
	}
	s.lanes.init(reads)
	s.reconnects = s.reconnections()
	l.work(s.dispatch)
	return s, nil
}

// reconnections is how often the connection of the feed was lost and found again.
func (s *shard) reconnections() uint64 { return s.nc.Stats().Reconnects }

// lost reports whether the shard's events cannot be heard or read at the moment.
func (s *shard) lost() bool {
	lost := s.logs.cfg.Lost
	return lost != nil && (lost(s.nc) || lost(s.lanes.nc))
}

// dispatch is the one goroutine that brings the shard's feed to its tails.
func (s *shard) dispatch(ctx context.Context) {
	touched := make([]*tail, 0, feedDrain)
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-s.feed:
			touched = s.deliver(touched, msg)
		}
		if len(s.feed) >= feedRoom-feedDrain {
			s.suspect.Store(true)
		}
	drain:
		for range feedDrain {
			select {
			case msg := <-s.feed:
				touched = s.deliver(touched, msg)
			default:
				break drain
			}
		}
		for i, t := range touched {
			t.wake()
			touched[i] = nil
		}
		touched = touched[:0]
	}
}

// deliver gives a message of the feed to its tail, and adds that to touched if its readers have
// something new.
func (s *shard) deliver(touched []*tail, msg *nats.Msg) []*tail {
	t := s.tail(hubOfFeed(msg.Subject))
	if t == nil {
		return touched
	}
	stored, err := parseStored(msg)
	if err != nil {
		s.logs.cfg.Log.Error(
			"unreadable message in the feed of a hub log", "hub_id", t.hub, "error", err,
		)
		return touched
	}
	changed, err := t.feed(stored)
	if err != nil {
		s.end(t, err)
		return touched
	}
	if !changed {
		return touched
	}
	for _, other := range touched {
		if other == t {
			return touched
		}
	}
	return append(touched, t)
}

// hubOfFeed gives the hub of feed.<hub>.….
func hubOfFeed(subject string) domain.HubID {
	_, rest, _ := strings.Cut(subject, ".")
	hub, _, _ := strings.Cut(rest, ".")
	return domain.HubID(hub)
}

func (s *shard) tail(hub domain.HubID) *tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tails[hub]
}

// all gives the tails that there are.
func (s *shard) all() []*tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*tail, 0, len(s.tails))
	for _, t := range s.tails {
		all = append(all, t)
	}
	return all
}

// acquire gives the hub's tail, opened, with the caller as one more reader. The caller releases it.
func (s *shard) acquire(ctx context.Context, hub domain.HubID) (*tail, error) {
	t, err := s.attach(hub)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.opened:
	case <-ctx.Done():
		s.release(t)
		return nil, ctx.Err()
	case <-s.logs.ctx.Done():
		s.release(t)
		return nil, ErrClosed
	}
	if t.openErr != nil {
		s.release(t)
		return nil, t.openErr
	}
	return t, nil
}

func (s *shard) attach(hub domain.HubID) (*tail, error) {
	epoch, err := s.logs.epoch(hub)
	if err != nil {
		return nil, err
	}
	if s.lost() {
		return nil, ErrLost
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	former := s.tails[hub]
	if former != nil && former.epoch.ID == epoch.ID {
		former.attach()
		s.mu.Unlock()
		return former, nil
	}
	t := newTail(s, hub, epoch)
	t.attach()
	s.tails[hub] = t
	s.logs.rings.tails.Add(1)
	s.logs.metrics.tails.Inc()
	s.mu.Unlock()
	if former != nil {
		s.drop(former, ErrLogEnded)
	}
	s.logs.work(t.open)
	return t, nil
}

func (s *shard) release(t *tail) { t.detach(time.Now()) }

// end takes a tail away: its readers end with err, and the next one opens another tail.
func (s *shard) end(t *tail, err error) {
	s.mu.Lock()
	current := s.tails[t.hub] == t
	if current {
		delete(s.tails, t.hub)
	}
	s.mu.Unlock()
	if current {
		s.drop(t, err)
	}
}

// Released ends the readers of a hub that no organization has any more, with not_found.
// Config.Epoch must know that already.
func (l *Logs) Released(hub domain.HubID) {
	s := l.shard(hub)
	if t := s.tail(hub); t != nil {
		s.end(t, domain.ErrHubNotFound())
	}
}

// endIdle takes a tail away if it has no readers; none can come in between.
func (s *shard) endIdle(t *tail, before time.Time) {
	s.mu.Lock()
	idle := s.tails[t.hub] == t && t.idleSince(before)
	if idle {
		delete(s.tails, t.hub)
	}
	s.mu.Unlock()
	if idle {
		s.drop(t, ErrClosed)
	}
}

// drop ends a tail that is in the map no more.
func (s *shard) drop(t *tail, err error) {
	t.fail(err)
	s.logs.rings.tails.Add(-1)
	s.logs.metrics.tails.Dec()
}

// writing says that an append to the hub's log is under way. The function that it answers says how
// it ended: with the last sequence that is stored for certain, or 0.
func (s *shard) writing(hub domain.HubID) func(last uint64) {
	before := s.tail(hub)
	if before != nil {
		before.appendBegun()
	}
	return func(last uint64) {
		if last > 0 {
			if t := s.tail(hub); t != nil {
				t.confirm(last)
			}
		}
		if before != nil {
			before.appendEnded()
		}
	}
}

func (s *shard) close() {
	s.mu.Lock()
	s.closed = true
	all := s.tails
	s.tails = nil
	s.mu.Unlock()
	for _, t := range all {
		s.drop(t, ErrClosed)
	}
	s.lanes.close()
}
