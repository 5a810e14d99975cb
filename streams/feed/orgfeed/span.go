package orgfeed

import (
	"bytes"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

// span has consecutive events of one organization: every event after start, and up to last, which
// have one time for each group. The mutex of its ring guards both.
type span struct {
	feed.Ring[entry]
	start, last []int64
}

// init makes the span begin after times, one for each group.
func (s *span) init(f *Feed, start []int64) {
	s.start, s.last = start, slices.Clone(start)
	s.Init(
		f.cfg.Logs.RingBudget(), f.cfg.RingEvents, (*entry).size,
		func(e *entry) { s.start[e.group] = e.time },
	)
}

// find returns the number of the first entry that a reader at a position may not have, and the
// times of the span before that entry. ok is false if the span no longer has all events after
// the position.
func (s *span) find(p Position) (number uint64, times []int64, ok bool) {
	s.Lock()
	defer s.Unlock()
	if !p.includes(s.start) {
		return 0, nil, false
	}
	times = slices.Clone(s.last)
	beyond := 0 // how many groups are after the position
	for g, t := range times {
		if t > p.Times[g] {
			beyond++
		}
	}
	entries, base := s.Entries()
	i := len(entries)
	for ; beyond > 0 && i > 0; i-- {
		e := &entries[i-1]
		if times[e.group] > p.Times[e.group] && e.before <= p.Times[e.group] {
			beyond--
		}
		times[e.group] = e.before
	}
	return base + uint64(i), times, true
}

// entry is an event of a span.
type entry struct {
	group int
	// time is when the event was stored, and before is the time of the group's last event before it
	// in the span, or of the group's start.
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
