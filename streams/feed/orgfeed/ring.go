package orgfeed

import (
	"context"
	"slices"
	"time"

	"hubcloud/streams/feed"
)

// ring has the newest events of one organization, in the order in which this process received them.
type ring struct {
	feed *Feed
	org  string
	// feedCounter counts the events of the organization.
	feedCounter *counter

	// opened is closed once the ring can be read, or openErr is set.
	opened  chan struct{}
	openErr error

	span
	// The span's mutex guards the fields below.

	// confirmed is a time, in milliseconds since 1970: everything stored before it was received.
	confirmed int64
}

// newRing returns an empty ring. The caller must hold f.mu.
func newRing(f *Feed, org string) *ring {
	r := &ring{
		feed: f, org: org, feedCounter: f.counterLocked(org), opened: make(chan struct{}),
	}
	r.init(f, make([]int64, f.groups))
	return r
}

// open finds the start of the ring.
func (r *ring) open(ctx context.Context) {
	defer close(r.opened)
	at, err := r.feed.sync(ctx)
	if err == nil {
		// A hub that was added before its events were stored must be among the organization's.
		err = unavailable(r.feed.cfg.Hubs.Refresh(ctx))
	}
	if err != nil {
		r.openErr = err
		r.feed.remove(r, err)
		return
	}
	ends := r.feed.ends(r.org)
	r.Lock()
	defer r.Unlock()
	r.Clear()
	for g := range r.last {
		r.last[g] = max(r.last[g], ends[g])
	}
	r.start, r.confirmed = slices.Clone(r.last), max(r.confirmed, at)
}

// end ends the readers with err.
func (r *ring) end(err error) {
	r.Lock()
	defer r.Unlock()
	r.End(err)
}

// push appends a received event. It reports whether readers must be woken.
func (r *ring) push(group int, received *feed.ReceivedEvent) bool {
	record := received.Record
	at := record.Time.UnixNano()
	r.Lock()
	defer r.Unlock()
	r.feedCounter.events.Add(1)
	if r.Err() != nil || at <= r.last[group] {
		return false
	}
	e := entry{
		group: group, time: at, before: r.last[group], complete: r.confirmed, hub: record.Hub,
		epoch: record.EpochID, seq: record.Seq, received: time.Now(),
	}
	r.last[group] = at
	if len(r.last) == 1 {
		e.complete = at / int64(time.Millisecond)
	}
	id := Position{Complete: e.complete, Times: r.last}.String()
	e.event = withID(make([]byte, 0, frameBytes(id, &received.Event)), id, &received.Event)
	r.Push(e)
	return r.IsAwaited()
}

// confirm records that everything stored before a time was received.
func (r *ring) confirm(at int64) {
	r.Lock()
	defer r.Unlock()
	r.confirmed = max(r.confirmed, at)
}

func (r *ring) confirmedAt() int64 {
	r.Lock()
	defer r.Unlock()
	return r.confirmed
}

// lastTimes returns the times of the last events, when they were known to be the last, and the
// number of the next entry.
func (r *ring) lastTimes() (times []int64, confirmed int64, number uint64) {
	r.Lock()
	defer r.Unlock()
	return slices.Clone(r.last), r.confirmed, r.Next()
}

// from returns the entries from a number on. ok is false if the ring no longer has the first.
// confirmed is for the position after all of them.
func (r *ring) from(number uint64) (entries []entry, confirmed int64, ok bool, err error) {
	r.Lock()
	defer r.Unlock()
	if err := r.Err(); err != nil {
		return nil, 0, false, err
	}
	entries, ok = r.From(number)
	return entries, r.confirmed, ok, nil
}

// wait returns a channel that is closed when the ring has an entry with that number or has ended;
// it is closed already if there is more to read.
func (r *ring) wait(number uint64, more bool) <-chan struct{} {
	r.Lock()
	defer r.Unlock()
	return r.Wait(more || number < r.Next())
}

func (r *ring) wake() {
	r.Lock()
	defer r.Unlock()
	r.Wake()
}
