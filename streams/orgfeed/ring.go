package orgfeed

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/hublog"
)

// ring has the newest events of one organization, in the order in which this process received them.
type ring struct {
	feed *Feed
	org  string

	// opened is closed once the ring can be read, or openErr is set.
	opened  chan struct{}
	openErr error

	mu sync.Mutex
	// err ends the readers.
	err error
	// entries are numbered from base on. Readers keep slices of entries, so elements never change:
	// it grows at the end, is cut at the front, and is copied when cut, the number of elements cut
	// since the last copy, gets large.
	entries []entry
	base    uint64
	cut     int
	bytes   int64
	// The ring has every event after start, and up to last. Both have one time for each group.
	start, last []int64
	// confirmed is a time, in milliseconds since 1970: everything stored before it was received.
	confirmed int64
	// changed is closed when entries grows or err is set, if waited is set.
	changed chan struct{}
	waited  bool

	readers int
	idle    time.Time
}

// entry is an event of a ring.
type entry struct {
	group int
	// time is when the event was stored, and before that of the group's last event before it in the
	// ring, or of the group's start.
	time, before int64
	// complete is the Complete of the position after the event.
	complete int64
	hub      domain.HubID
	epoch    domain.EpochID
	seq      uint64
	// received is when this process received the event.
	received time.Time
	// event has the cursor and the frame of the feed.
	event domain.EncodedEvent
}

// entryOverhead is about the memory of an entry beside its frame.
const entryOverhead = 260

func (e *entry) size() int64 {
	return int64(cap(e.event.Frame)+len(e.event.Cursor)) + entryOverhead
}

func newRing(f *Feed, org string) *ring {
	f.cfg.Logs.RingBudget().Open()
	return &ring{
		feed: f, org: org, opened: make(chan struct{}), changed: make(chan struct{}),
		start: make([]int64, f.groups), last: make([]int64, f.groups),
	}
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
	r.cutLocked(len(r.entries))
	r.feed.cfg.Logs.RingBudget().Close()
	r.wakeLocked()
}

// push appends a received event. It reports whether readers must be woken.
func (r *ring) push(group int, received *hublog.ReceivedEvent) bool {
	record := received.Record
	at := record.Time.UnixNano()
	r.mu.Lock()
	defer r.mu.Unlock()
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
	r.entries = append(r.entries, e)
	r.bytes += e.size()
	r.feed.cfg.Logs.RingBudget().Add(e.size())
	r.trimLocked()
	return r.waited
}

// frameBytes returns the length of an event's frame with that id.
func frameBytes(id string, e *domain.EncodedEvent) int {
	return len(e.Frame) - len(e.Cursor) + len(id)
}

// withID returns an event of a hub's log with the frame and the cursor that it has in the feed. The
// frame is appended to dst.
func withID(dst []byte, id string, e *domain.EncodedEvent) domain.EncodedEvent {
	const prefix = "id: "
	from := len(dst)
	dst = append(dst, prefix...)
	dst = append(dst, id...)
	dst = append(dst, e.Frame[len(prefix)+len(e.Cursor):]...)
	frame := dst[from:len(dst):len(dst)]
	end := len(frame) - len("\n\n")
	return domain.EncodedEvent{
		Seq: e.Seq, StoredNanos: e.StoredNanos, Frame: frame,
		Envelope: frame[end-len(e.Envelope) : end : end], Cursor: id,
	}
}

// trimLocked cuts the oldest events until the ring is within its bounds. The caller must hold r.mu.
func (r *ring) trimLocked() {
	budget := r.feed.cfg.Logs.RingBudget()
	for len(r.entries) > r.feed.cfg.RingEvents ||
		len(r.entries) > 0 && budget.MustTrim(r.bytes) {
		r.cutLocked(1)
	}
}

// cutLocked cuts the first n events. The caller must hold r.mu.
func (r *ring) cutLocked(n int) {
	for i := range n {
		e := &r.entries[i]
		r.start[e.group] = e.time
		r.bytes -= e.size()
		r.feed.cfg.Logs.RingBudget().Add(-e.size())
	}
	r.entries, r.base, r.cut = r.entries[n:], r.base+uint64(n), r.cut+n
	if r.cut > len(r.entries)/2+16 {
		// The array under the slice still holds the events that were cut.
		r.entries = append(make([]entry, 0, len(r.entries)+len(r.entries)/2+16), r.entries...)
		r.cut = 0
	}
}

// trimToBudget trims the ring after other rings have grown.
func (r *ring) trimToBudget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trimLocked()
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

// lastTimes returns the times of the last events, and when they were known to be the last.
func (r *ring) lastTimes() (times []int64, confirmed int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.last), r.confirmed
}

// find returns the number of the first entry that a reader at a position may not have, and the
// times of the ring before that entry. ok is false if the ring no longer has all events after the
// position.
func (r *ring) find(p Position) (number uint64, times []int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !p.includes(r.start) {
		return 0, nil, false
	}
	times = slices.Clone(r.last)
	beyond := 0 // how many groups are after the position
	for g, t := range times {
		if t > p.Times[g] {
			beyond++
		}
	}
	i := len(r.entries)
	for ; beyond > 0 && i > 0; i-- {
		e := &r.entries[i-1]
		if times[e.group] > p.Times[e.group] && e.before <= p.Times[e.group] {
			beyond--
		}
		times[e.group] = e.before
	}
	return r.base + uint64(i), times, true
}

// from returns the entries from a number on. ok is false if the ring no longer has the first.
// confirmed is for the position after all of them.
func (r *ring) from(number uint64) (entries []entry, confirmed int64, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, 0, false, r.err
	}
	if number < r.base {
		return nil, 0, false, nil
	}
	return slices.Clip(r.entries[number-r.base:]), r.confirmed, true, nil
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

// eventType returns the type of an event, as it is in the envelope.
func eventType(e *domain.EncodedEvent) string {
	const before = `","type":"`
	_, rest, ok := bytes.Cut(e.Envelope, []byte(before))
	if !ok {
		return ""
	}
	end := bytes.IndexByte(rest, '"')
	return string(rest[:max(end, 0)])
}
