package hublog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// feedCapacity is how many messages of a shard's feed may wait. More are lost, and read from
	// the stream.
	feedCapacity = 4096
	// feedBatch is how many messages are received before their readers are woken.
	feedBatch = 256
)

// shard is what the logs in one account of the broker share: connections, tails and their feed.
type shard struct {
	logs *Logs
	nc   *nats.Conn
	js   jetstream.JetStream
	// reads is for direct gets, over the connection of Config.Reads.
	reads *jsapi.BatchPool
	// loadSlots has one entry for each load of history under way.
	loadSlots chan struct{}

	// feed receives from the subscriptions of all tails.
	feed chan *nats.Msg
	// suspect reports that messages of the feed may have been lost without a visible gap. The next
	// sweep checks all tails.
	suspect atomic.Bool
	// reconnects is the value of reconnections at the last sweep.
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
		logs:      l,
		nc:        nc,
		js:        js,
		feed:      make(chan *nats.Msg, feedCapacity),
		tails:     map[domain.HubID]*tail{},
		loadSlots: make(chan struct{}, maxShardLoads),
		reads:     jsapi.New(reads).NewBatchPool(maxGets, maxGet),
	}
	s.reconnects = s.reconnections()
	l.work(s.dispatch)
	return s, nil
}

// reconnections returns how often the feed's connection has reconnected.
func (s *shard) reconnections() uint64 { return s.nc.Stats().Reconnects }

// lost reports whether a connection of the shard is cut off from the broker.
func (s *shard) lost() bool {
	lost := s.logs.cfg.Lost
	return lost != nil && (lost(s.nc) || lost(s.reads.Conn()))
}

// dispatch passes the messages of the shard's feed to the tails, in one goroutine.
func (s *shard) dispatch(ctx context.Context) {
	changed := make([]*tail, 0, feedBatch)
	for {
		select {
		case <-ctx.Done():
			return
		case msg := <-s.feed:
			changed = s.deliver(changed, msg)
		}
		if len(s.feed) >= feedCapacity-feedBatch {
			s.suspect.Store(true)
		}
	drain:
		for range feedBatch {
			select {
			case msg := <-s.feed:
				changed = s.deliver(changed, msg)
			default:
				break drain
			}
		}
		for i, t := range changed {
			t.wake()
			changed[i] = nil
		}
		changed = changed[:0]
	}
}

// deliver passes a message of the feed to the tail of its log. If the message makes more visible to
// readers, deliver adds the tail to changed.
func (s *shard) deliver(changed []*tail, msg *nats.Msg) []*tail {
	t := s.tail(streams.ParseFeedSubject(msg.Subject))
	if t == nil {
		return changed
	}
	stored, err := parsePublished(msg)
	if err != nil {
		s.logs.cfg.Logger.Error(
			"message in feed of hub log unreadable", "hub_id", t.hub, "error", err,
		)
		return changed
	}
	more, err := t.receive(stored)
	if err != nil {
		s.remove(t, err)
		return changed
	}
	if more && !slices.Contains(changed, t) {
		changed = append(changed, t)
	}
	return changed
}

func (s *shard) tail(hub domain.HubID) *tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tails[hub]
}

// all returns all tails.
func (s *shard) all() []*tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*tail, 0, len(s.tails))
	for _, t := range s.tails {
		all = append(all, t)
	}
	return all
}

// acquire returns the hub's tail once it is open. The caller counts as a reader of it until
// release.
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
		s.stop(former, ErrEpochEnded)
	}
	s.logs.work(t.open)
	return t, nil
}

func (s *shard) release(t *tail) { t.detach(time.Now()) }

// remove removes a tail. Its readers end with err, and the next reader opens a new tail.
func (s *shard) remove(t *tail, err error) {
	s.mu.Lock()
	current := s.tails[t.hub] == t
	if current {
		delete(s.tails, t.hub)
	}
	s.mu.Unlock()
	if current {
		s.stop(t, err)
	}
}

// removeIdle removes a tail that has had no readers since before. Readers attach under s.mu, so
// none can attach in between.
func (s *shard) removeIdle(t *tail, before time.Time) {
	s.mu.Lock()
	idle := s.tails[t.hub] == t && t.idleSince(before)
	if idle {
		delete(s.tails, t.hub)
	}
	s.mu.Unlock()
	if idle {
		s.stop(t, ErrClosed)
	}
}

// stop ends a tail that was removed from the map.
func (s *shard) stop(t *tail, err error) {
	t.fail(err)
	s.logs.rings.tails.Add(-1)
	s.logs.metrics.tails.Dec()
}

// beginAppend counts an append under way in the hub's tail. The caller must call the returned
// function at its end, with the last sequence stored, or 0 if it failed.
func (s *shard) beginAppend(hub domain.HubID) func(last uint64) {
	counted := s.tail(hub)
	if counted != nil {
		counted.appendBegun()
	}
	return func(last uint64) {
		if last > 0 {
			// The tail may have been opened or replaced during the append.
			if current := s.tail(hub); current != nil {
				current.confirm(last)
			}
		}
		if counted != nil {
			counted.appendEnded()
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
		s.stop(t, ErrClosed)
	}
	s.reads.Close()
}
