package orgfeed

import (
	"bytes"
	"time"

	"hubcloud/domain"
)

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
