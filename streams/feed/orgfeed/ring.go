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

	window
	// The fields below are guarded by the window's mutex.

	// err ends the readers.
	err error
	// confirmed is a time, in milliseconds since 1970: everything stored before it was received.
	confirmed int64
	// changed is closed when entries grows or err is set, if waited is set.
	changed chan struct{}
	waited  bool

	readers int
	idle    time.Time
}

// newRing returns an empty ring. The caller must hold f.mu.
func newRing(f *Feed, org string) *ring {
	r := &ring{
		feed: f, org: org, feedCounter: f.counterLocked(org), opened: make(chan struct{}),
		changed: make(chan struct{}),
	}
	r.window.init(f, make([]int64, f.groups))
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
	var ends []int64
	if err == nil {
		ends, err = r.feed.ends(ctx, r.org)
	}
	if err != nil {
		r.openErr = err
		r.feed.remove(r, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutLocked(len(r.entries))
	for g := range r.last {
		r.last[g] = max(r.last[g], ends[g])
	}
	r.start, r.confirmed = slices.Clone(r.last), max(r.confirmed, at)
}

// end ends the readers with err.
func (r *ring) end(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.err = err
	r.closeLocked()
	r.wakeLocked()
}

// push appends a received event. It reports whether readers must be woken.
func (r *ring) push(group int, received *feed.ReceivedEvent) bool {
	record := received.Record
	at := record.Time.UnixNano()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.feedCounter.events.Add(1)
	if r.err != nil || at <= r.last[group] {
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
	r.appendLocked(e)
	return r.waited
}

// confirm records that everything stored before a time was received.
func (r *ring) confirm(at int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confirmed = max(r.confirmed, at)
}

func (r *ring) confirmedAt() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.confirmed
}

// lastTimes returns the times of the last events, when they were known to be the last, and the
// number of the next entry.
func (r *ring) lastTimes() (times []int64, confirmed int64, number uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.last), r.confirmed, r.base + uint64(len(r.entries))
}

// from returns the entries from a number on. ok is false if the ring no longer has the first.
// confirmed is for the position after all of them.
func (r *ring) from(number uint64) (entries []entry, confirmed int64, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, 0, false, r.err
	}
	entries, ok = r.fromLocked(number)
	return entries, r.confirmed, ok, nil
}

// wait returns a channel that is closed when the ring has an entry with that number or has ended.
func (r *ring) wait(number uint64) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || number < r.base+uint64(len(r.entries)) {
		return closed
	}
	r.waited = true
	return r.changed
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (r *ring) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeLocked()
}

func (r *ring) wakeLocked() {
	if r.waited {
		close(r.changed)
		r.changed, r.waited = make(chan struct{}), false
	}
}

func (r *ring) attach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers++
}

func (r *ring) detach(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readers--
	if r.readers == 0 {
		r.idle = now
	}
}

// idleSince reports whether the ring has had no reader since before.
func (r *ring) idleSince(before time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.readers == 0 && r.idle.Before(before)
}
