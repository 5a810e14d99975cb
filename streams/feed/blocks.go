package feed

import (
	"container/list"
	"hash/maphash"
	"sort"
	"sync"

	"hubcloud/domain"
)

const (
	// blockSize is the number of sequences in a block, the unit that the cache finds, shares and
	// evicts. Loads may span several blocks.
	blockSize = 64
	// cacheShards is the number of locks, so that readers of different blocks rarely wait.
	cacheShards = 16
	// blockOverhead is about the memory of a block beside its events, in bytes.
	blockOverhead = 300
)

// blockCache is a cache of encoded history, bounded in bytes, that evicts the least recently used
// block. The events between two sequences of a log never change, so entries never become wrong;
// expired ones are just no longer read.
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
	// recent has the blocks, most recently used first.
	recent  list.List
	loading map[blockKey]*load
}

// blockKey identifies a block: blockSize sequences from number*blockSize on.
type blockKey struct {
	hub    domain.HubID
	epoch  domain.EpochID
	number uint64
}

// block holds the events from sequence from to to, both included: all of the block's, or a part.
type block struct {
	key      blockKey
	from, to uint64
	events   []domain.EncodedEvent
	bytes    int64
}

// load is a range of sequences that is being read into the cache. done is closed at its end, also
// if it fails.
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

// blockEnd returns the last sequence of the block that contains seq.
func blockEnd(seq uint64) uint64 { return seq/blockSize*blockSize + blockSize - 1 }

func (c *blockCache) shard(key blockKey) *cacheShard {
	return &c.shards[maphash.Comparable(c.seed, key)%cacheShards]
}

// find returns the cached events from seq to the end of its block. They are complete up to the
// sequence through. through is 0 when seq is not cached; wait is then closed at the end of the load
// that is under way, and nil if there is none.
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

// begin registers a load of the sequences from from to to, cut where the next block is cached or
// being loaded. The load starts before from where a gap would separate it from the cached part of
// its block. It returns nil when the first block is cached or being loaded.
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

// claim registers l for one block, of which it wants the sequences from seq to end, and returns up
// to which sequence l must load them. ok is false when another load has come first.
func (c *blockCache) claim(l *load, key blockKey, seq, end uint64) (last uint64, ok bool) {
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
			// Only the first block of a load can hold earlier sequences: the others are wanted
			// from their first sequence.
			l.from = b.to + 1
		default:
			end = b.from - 1
		}
	}
	s.loading[key] = l
	return end, true
}

// add puts the events of a load into the cache: all those from sequence from to to.
func (c *blockCache) add(l *load, from, to uint64, events []domain.EncodedEvent) {
	for from <= to {
		end := min(to, blockEnd(from))
		n := sort.Search(len(events), func(i int) bool { return events[i].Seq > end })
		// Each block has its own slice, so that a block does not keep others in memory.
		b := &block{key: blockKey{l.hub, l.epoch, from / blockSize}, from: from, to: end}
		b.events = append(make([]domain.EncodedEvent, 0, n), events[:n]...)
		c.put(b)
		from, events = end+1, events[n:]
	}
}

// put replaces the cached part of a block by b, joined with it where they are adjacent.
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

// finish ends a load, also one that failed.
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
