package journal

import (
	"container/list"
	"sync"
	"unsafe"
)

// cache keeps the commits that were read last, bounded in bytes. Commits never change.
type cache struct {
	limit int

	mu    sync.Mutex
	bytes int
	// commits has the elements of recent, whose values are *cached, the last used first.
	commits map[cacheKey]*list.Element
	recent  list.List
}

type cacheKey struct {
	group int
	seq   uint64
}

type cached struct {
	key    cacheKey
	commit *Commit
	bytes  int
}

func newCache(limit int) *cache {
	return &cache{limit: limit, commits: map[cacheKey]*list.Element{}}
}

// get returns a commit, nil if the cache does not have it.
func (c *cache) get(key cacheKey) *Commit {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.commits[key]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cached).commit
}

// put adds a commit that was read from stored bytes, and removes those that were not used for
// longest.
func (c *cache) put(key cacheKey, commit *Commit, stored int) {
	size := stored + len(commit.Records)*int(unsafe.Sizeof(Record{})) +
		len(commit.Links)*int(unsafe.Sizeof(Link{}))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.commits[key] != nil || size > c.limit {
		return
	}
	c.commits[key] = c.recent.PushFront(&cached{key, commit, size})
	c.bytes += size
	for c.bytes > c.limit {
		oldest := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.commits, oldest.key)
		c.bytes -= oldest.bytes
	}
}
