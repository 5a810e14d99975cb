package orgfeed

import (
	"context"
	"sync/atomic"
	"time"

	"hubcloud/domain"
)

// counter counts the events of an organization that this process has received. It exists while the
// organization has a ring and, once it is kept, until the process ends. Events of the ring are
// counted with the ring locked.
type counter struct {
	events atomic.Uint64
	// kept is guarded by Feed.mu.
	kept bool
}

// Counted returns how many events of an organization this process has counted. It counts them from
// the first call on at the latest. Only differences have a meaning: see domain.FeedLag.Mark.
func (f *Feed) Counted(org string) uint64 {
	f.mu.RLock()
	c := f.counters[org]
	kept := c != nil && c.kept
	f.mu.RUnlock()
	if !kept {
		f.mu.Lock()
		c = f.counterLocked(org)
		c.kept = true
		f.mu.Unlock()
	}
	return c.events.Load()
}

// counterLocked returns the counter of an organization. The caller must hold f.mu.
func (f *Feed) counterLocked(org string) *counter {
	c := f.counters[org]
	if c == nil {
		c = &counter{}
		f.counters[org] = c
	}
	return c
}

// Lag returns how far the reader is behind the end of the feed. It needs no request.
//
// Behind counts the events of the hubs that the filter chooses, of all types: which of them have a
// type is not known before they are read.
func (r *Reader) Lag(context.Context) domain.FeedLag {
	number, behind := r.number, uint64(len(r.held))
	switch m := r.merge; {
	case m != nil:
		number = m.number
		for _, log := range m.logs {
			behind += log.left()
		}
	case r.catchUp != nil:
		inCatchUp, next := r.catchUp.after(r.number)
		behind, number = behind+inCatchUp, next
	case !r.joined:
		number, _, _ = r.ring.find(r.pos)
	}
	following, mark := r.ring.after(number, &r.filter)
	return domain.FeedLag{
		Behind: behind + following, Mark: mark, At: time.UnixMilli(r.complete),
	}
}

// after returns how many events of hubs that the filter chooses the ring has had from a number on,
// and the organization's count.
func (r *ring) after(number uint64, filter *domain.EventFilter) (following, mark uint64) {
	r.Lock()
	end, mark := r.Next(), r.feedCounter.events.Load()
	entries, ok := r.From(min(number, end))
	if !ok {
		entries, _ = r.Entries()
	}
	r.Unlock()
	if number >= end {
		return 0, mark
	}
	following = end - number
	if filter.HasAllHubs() {
		return following, mark
	}
	for i := range entries {
		access, ok := r.feed.cfg.Hubs.Hub(entries[i].hub)
		if !ok || !filter.HasHub(entries[i].hub, access.SiteID) {
			following--
		}
	}
	return following, mark
}

// after returns how many events the catch-up has or will have from a number on, and the number of
// the ring's first entry after them.
func (p *catchUp) after(number uint64) (following, next uint64) {
	p.Lock()
	defer p.Unlock()
	end := p.Next()
	return end - min(number, end) + p.left, p.next
}

// count sets what is left of the merge. The caller must have the turn.
func (p *catchUp) count() {
	left := uint64(0)
	for _, log := range p.merge.logs {
		left += log.left()
	}
	p.Lock()
	defer p.Unlock()
	p.left, p.next = left, p.merge.number
}
