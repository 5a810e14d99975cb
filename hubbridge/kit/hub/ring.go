package hub

import (
	"encoding/json"
	"slices"
)

// ring is a queue of events: push appends, drop removes from the front. The zero ring is empty.
type ring struct {
	events []json.RawMessage
	head   int // index of the first event in events
}

func (r *ring) len() int { return len(r.events) - r.head }

// from returns the events after the first n. The slice is valid until the next push or drop.
func (r *ring) from(n int) []json.RawMessage { return r.events[r.head+n:] }

func (r *ring) push(events []json.RawMessage) { r.events = append(r.events, events...) }

// drop drops the first n events; a negative n is 0. Once more than half of the slice is unused, the
// rest is copied to a new slice: each event is copied a bounded number of times, and memory is
// freed.
func (r *ring) drop(n int) {
	if n <= 0 {
		return
	}
	clear(r.events[r.head : r.head+n])
	r.head += n
	switch {
	case r.head == len(r.events):
		r.events, r.head = nil, 0
	case r.head > 64 && r.head > len(r.events)/2:
		r.events, r.head = slices.Clone(r.events[r.head:]), 0
	}
}
