package feed

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// shard is what the logs in one account of the broker share: connections and tails.
type shard struct {
	logs *Logs
	// nc is for requests, and new records come over cloud.
	nc, cloud *nats.Conn
	// reads is for direct gets, over the connection of Config.Reads.
	reads *jsapi.BatchPool
	// loadSlots has one entry for each load of history under way.
	loadSlots chan struct{}

	mu     sync.Mutex
	closed bool
	tails  map[domain.HubID]*tail
}

func newShard(l *Logs, nc, reads, cloud *nats.Conn) *shard {
	return &shard{
		logs:      l,
		nc:        nc,
		cloud:     cloud,
		tails:     map[domain.HubID]*tail{},
		loadSlots: make(chan struct{}, maxShardLoads),
		reads:     jsapi.New(reads).NewBatchPool(maxGets, maxGet),
	}
}

// lost reports whether a connection of the shard is cut off from the broker.
func (s *shard) lost() bool {
	lost := s.logs.cfg.Lost
	return lost != nil && (lost(s.nc) || lost(s.reads.Conn()) || lost(s.cloud))
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

// acquire returns the hub's tail. The caller counts as a reader of it until release.
func (s *shard) acquire(hub domain.HubID) (*tail, error) {
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
		return nil, domain.ErrEventsClosed
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
	s.logs.metrics.tails.Inc()
	s.mu.Unlock()
	if former != nil {
		s.stop(former, ErrEpochEnded)
	}
	// What was received before the tail was in the map.
	tip, _ := s.logs.cfg.Journal.Tip(hub)
	t.skipTo(tip.Seq)
	return t, nil
}

func (s *shard) release(t *tail) { t.detach() }

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
	idle := s.tails[t.hub] == t && t.IdleSince(before)
	if idle {
		delete(s.tails, t.hub)
	}
	s.mu.Unlock()
	if idle {
		s.stop(t, domain.ErrEventsClosed)
	}
}

// stop ends a tail that was removed from the map.
func (s *shard) stop(t *tail, err error) {
	t.fail(err)
	s.logs.metrics.tails.Dec()
}

func (s *shard) close() {
	s.mu.Lock()
	s.closed = true
	all := s.tails
	s.tails = nil
	s.mu.Unlock()
	for _, t := range all {
		s.stop(t, domain.ErrEventsClosed)
	}
	s.reads.Close()
}
