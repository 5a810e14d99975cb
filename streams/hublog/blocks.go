package hublog

import (
	"container/list"
	"hash/maphash"
	"sort"
	"sync"

	"hubcloud/domain"
)

const (
	// blockSize is how many sequences a block has. Blocks are what the cache finds, shares and
	// gives up; what is read from the log follows what is asked for.
	blockSize = 64
	// cacheShards keeps readers of different blocks from waiting for each other.
	cacheShards = 16
	// blockOverhead is about what a block takes in memory beside its events.
	blockOverhead = 300
)

// blockCache holds encoded history, bounded in bytes, and gives up what was not used for longest.
// The events between two sequences of a log never change, so nothing in it is ever wrong; what has
// expired is no more asked for.
type blockCache struct {
	seed    maphash.Seed
	metrics *metrics
	shards  [cacheShards]cacheShard
}

type cacheShard struct {
	mu     sync.Mutex
	limit  int64
	bytes  int64
	blocks map[blockKey]*list.Element // of *block
	// recent has the blocks, last used first.
	recent  list.List
	loading map[blockKey]*load
}

// blockKey names a block: the sequences from number*blockSize on.
type blockKey struct {
	hub    domain.HubID
	epoch  domain.EpochID
	number uint64
}

// block holds the events of the sequences from from to to, both included, which are all or some of
// a block's.
type block struct {
	key      blockKey
	from, to uint64
	events   []domain.EncodedEvent
	bytes    int64
}

// load is a run of sequences on its way into the cache. done is closed when it is there, or has
// failed.
type load struct {
	hub      domain.HubID
	epoch    domain.EpochID
	from, to uint64
	done     chan struct{}
}

func newBlockCache(bytes int64, m *metrics) *blockCache {
	c := &blockCache{seed: maphash.MakeSeed(), metrics: m}
	for i := range c.shards {
		s := &c.shards[i]
		s.limit = bytes / cacheShards
		s.blocks = map[blockKey]*list.Element{}
		s.loading = map[blockKey]*load{}
	}
	return c
}

// blockEnd is the last sequence of the block of seq.
func blockEnd(seq uint64) uint64 { return seq/blockSize*blockSize + blockSize - 1 }

func (c *blockCache) shard(key blockKey) *cacheShard {
	return &c.shards[maphash.Comparable(c.seed, key)%cacheShards]
}

// find gives the events from seq to the end of what its block holds, and the sequence up to which
// that is; or, when that is 0, what to wait for if somebody is loading them.
func (c *blockCache) find(
	hub domain.HubID, epoch domain.EpochID, seq uint64,
) (events []domain.EncodedEvent, through uint64, wait <-chan struct{}) {
	key := blockKey{hub, epoch, seq / blockSize}
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.blocks[key]; e != nil {
		if b := e.Value.(*block); b.from <= seq && seq <= b.to {
			s.recent.MoveToFront(e)
			c.metrics.cacheHits.Inc()
			i := sort.Search(len(b.events), func(i int) bool { return b.events[i].Seq >= seq })
			return b.events[i:], b.to, nil
		}
	}
	if l := s.loading[key]; l != nil {
		return nil, 0, l.done
	}
	return nil, 0, nil
}

// begin announces a load of the sequences from from on, up to to or what the cache has or somebody
// else is loading. It begins earlier where what is in a block would otherwise not join, and is nil
// when another load has come before it.
func (c *blockCache) begin(hub domain.HubID, epoch domain.EpochID, from, to uint64) *load {
	l := &load{hub: hub, epoch: epoch, from: from, to: from - 1, done: make(chan struct{})}
	for seq := from; seq <= to; seq = blockEnd(seq) + 1 {
		key := blockKey{hub, epoch, seq / blockSize}
		end, ok := c.claim(l, key, seq, min(to, blockEnd(seq)))
		if !ok {
			break
		}
		l.to = end
		if end < blockEnd(seq) {
			break
		}
	}
	if l.to < from {
		return nil
	}
	return l
}

// claim announces l for one block, in which the sequences from seq to end are wanted, and says up
// to which they should be loaded.
func (c *blockCache) claim(l *load, key blockKey, seq, end uint64) (uint64, bool) {
	s := c.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loading[key] != nil {
		return 0, false
	}
	if e := s.blocks[key]; e != nil {
		switch b := e.Value.(*block); {
		case b.from <= seq && seq <= b.to:
			return 0, false
		case b.to < seq:
			// Only the first block of a run can have something before what is wanted: the others
			// are wanted from their beginning.
			l.from = b.to + 1
		default:
			end = b.from - 1
		}
	}
	s.loading[key] = l
	return end, true
}

// add puts what was loaded into the cache: the events of the sequences from from to to.
func (c *blockCache) add(l *load, from, to uint64, events []domain.EncodedEvent) {
	for from <= to {
		end := min(to, blockEnd(from))
		n := sort.Search(len(events), func(i int) bool { return events[i].Seq > end })
		// Each block has a slice of its own: one that outlives the others should not hold them.
		b := &block{key: blockKey{l.hub, l.epoch, from / blockSize}, from: from, to: end}
		b.events = append(make([]domain.EncodedEvent, 0, n), events[:n]...)
		c.put(b)
		from, events = end+1, events[n:]
	}
}

// put joins b with what the cache has of its block, if they touch, and puts it in that one's place.
func (c *blockCache) put(b *block) {
	s := c.shard(b.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.bytes
	if e := s.blocks[b.key]; e != nil {
		former := e.Value.(*block)
		switch {
		case former.to+1 == b.from:
			b.events = append(former.events[:len(former.events):len(former.events)], b.events...)
			b.from = former.from
		case b.to+1 == former.from:
			b.events = append(b.events, former.events...)
			b.to = former.to
		}
		s.remove(e)
	}
	b.bytes = blockOverhead
	for _, e := range b.events {
		b.bytes += eventBytes(e)
	}
	s.blocks[b.key] = s.recent.PushFront(b)
	s.bytes += b.bytes
	for s.bytes > s.limit && s.recent.Len() > 1 {
		s.remove(s.recent.Back())
	}
	c.metrics.cacheBytes.Add(float64(s.bytes - before))
}

func (s *cacheShard) remove(e *list.Element) {
	b := s.recent.Remove(e).(*block)
	delete(s.blocks, b.key)
	s.bytes -= b.bytes
}

// finish ends a load, successful or not.
func (c *blockCache) finish(l *load) {
	for seq := l.from; seq <= l.to; seq = blockEnd(seq) + 1 {
		key := blockKey{l.hub, l.epoch, seq / blockSize}
		s := c.shard(key)
		s.mu.Lock()
		if s.loading[key] == l {
			delete(s.loading, key)
		}
		s.mu.Unlock()
	}
	close(l.done)
}
