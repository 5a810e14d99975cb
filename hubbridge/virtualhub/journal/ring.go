package journal

import "encoding/json"

// ring is a queue of events: pushed at its end, dropped from its front. The zero ring is empty.
type ring struct {
	held []json.RawMessage
	head int // where the first event stands in held
}

func (r *ring) len() int { return len(r.held) - r.head }

// from is what is held after the first n events. It is valid until the next push or drop.
func (r *ring) from(n int) []json.RawMessage { return r.held[r.head+n:] }

func (r *ring) push(events []json.RawMessage) { r.held = append(r.held, events...) }

// drop drops the first n events; less than one is none. Once most of the slice is behind the head,
// the rest moves to a slice of its own: each event is moved a bounded number of times, and no
// memory is held for what is gone.
func (r *ring) drop(n int) {
	if n <= 0 {
		return
	}
	clear(r.held[r.head : r.head+n])
	r.head += n
	switch {
	case r.head == len(r.held):
		r.held, r.head = nil, 0
	case r.head > 64 && r.head > len(r.held)/2:
		r.held, r.head = append([]json.RawMessage(nil), r.held[r.head:]...), 0
	}
}
