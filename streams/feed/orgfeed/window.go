package orgfeed

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

// window has consecutive events of one organization, each encoded once for all readers. It is
// bounded in events and bytes: the oldest are cut.
type window struct {
	budget *feed.RingBudget
	limit  int

	mu sync.Mutex
	// entries are numbered from base on. Readers keep slices of entries, so elements never change:
	// it grows at the end, is cut at the front, and is copied when cut, the number of elements cut
	// since the last copy, gets large.
	entries []entry
	base    uint64
	cut     int
	bytes   int64
	// The window has every event after start, and up to last. Both have one time for each group.
	start, last []int64
}

// init makes the window begin after times, one for each group. closeLocked must be called at its
// end.
func (w *window) init(f *Feed, start []int64) {
	w.budget, w.limit = f.cfg.Logs.RingBudget(), f.cfg.RingEvents
	w.start, w.last = start, slices.Clone(start)
	w.budget.Open()
}

// entry is an event of a window.
type entry struct {
	group int
	// time is when the event was stored, and before that of the group's last event before it in the
	// window, or of the group's start.
	time, before int64
	// complete is the Complete of the position after the event.
	complete int64
	hub      domain.HubID
	epoch    domain.EpochID
	seq      uint64
	// gap reports that the event is a feed.gap.
	gap bool
	// received is when this process received or read the event.
	received time.Time
	// event has the cursor and the frame of the feed.
	event domain.EncodedEvent
}

// entryOverhead is about the memory of an entry beside its frame.
const entryOverhead = 260

func (e *entry) size() int64 {
	return int64(cap(e.event.Frame)+len(e.event.Cursor)) + entryOverhead
}

// appendLocked appends an event, and cuts the oldest ones if there are too many. The caller must
// hold w.mu and have set last.
func (w *window) appendLocked(e entry) {
	w.entries = append(w.entries, e)
	w.bytes += e.size()
	w.budget.Add(e.size())
	w.trimLocked()
}

// trimLocked cuts the oldest events until the window is within its bounds. The caller must hold
// w.mu.
func (w *window) trimLocked() {
	for len(w.entries) > w.limit || len(w.entries) > 0 && w.budget.MustTrim(w.bytes) {
		w.cutLocked(1)
	}
}

// cutLocked cuts the first n events. The caller must hold w.mu.
func (w *window) cutLocked(n int) {
	for i := range n {
		e := &w.entries[i]
		w.start[e.group] = e.time
		w.bytes -= e.size()
		w.budget.Add(-e.size())
	}
	w.entries, w.base, w.cut = w.entries[n:], w.base+uint64(n), w.cut+n
	if w.cut > len(w.entries)/2+16 {
		// The array under the slice still holds the events that were cut.
		w.entries = append(make([]entry, 0, len(w.entries)+len(w.entries)/2+16), w.entries...)
		w.cut = 0
	}
}

// trimToBudget trims the window after others have grown.
func (w *window) trimToBudget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.trimLocked()
}

// closeLocked cuts all events and ends the window. The caller must hold w.mu.
func (w *window) closeLocked() {
	w.cutLocked(len(w.entries))
	w.budget.Close()
}

// find returns the number of the first entry that a reader at a position may not have, and the
// times of the window before that entry. ok is false if the window no longer has all events after the
// position.
func (w *window) find(p Position) (number uint64, times []int64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !p.includes(w.start) {
		return 0, nil, false
	}
	times = slices.Clone(w.last)
	beyond := 0 // how many groups are after the position
	for g, t := range times {
		if t > p.Times[g] {
			beyond++
		}
	}
	i := len(w.entries)
	for ; beyond > 0 && i > 0; i-- {
		e := &w.entries[i-1]
		if times[e.group] > p.Times[e.group] && e.before <= p.Times[e.group] {
			beyond--
		}
		times[e.group] = e.before
	}
	return w.base + uint64(i), times, true
}

// fromLocked returns the entries from a number on. ok is false if the window no longer has the
// first. The caller must hold w.mu.
func (w *window) fromLocked(number uint64) (entries []entry, ok bool) {
	if number < w.base {
		return nil, false
	}
	return slices.Clip(w.entries[number-w.base:]), true
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
