package ingest

import (
	"slices"

	"hubcloud/hubbridge/presence"
)

// kind is the kind of an item.
type kind uint8

const (
	kindHello kind = iota
	kindEvents
	kindObservation
	kindFlush
	// kindRepeatAck repeats the hub's last ack: the hub sends again what has none.
	kindRepeatAck
)

// item is one piece of work for a hub.
type item struct {
	kind kind
	// data is the message of a kindHello or kindEvents.
	data        []byte
	observation *presence.Observation
}

// inbox is a hub's queue. The shard's mutex guards it.
type inbox struct {
	items []item
	bytes int
	// scheduled reports whether the hub is in its shard's ready queue, with a worker, or paused.
	scheduled bool
	paused    bool
	// flush requests that the checkpoint be written. flushWaiting reports whether the hub is in its
	// shard's flushes.
	flush, flushWaiting bool
}

// has reports whether an item of a kind waits.
func (b *inbox) has(k kind) bool {
	return slices.ContainsFunc(b.items, func(it item) bool { return it.kind == k })
}

func (b *inbox) empty() bool { return len(b.items) == 0 && !b.flush }

// push appends an item.
func (b *inbox) push(it item) {
	b.items = append(b.items, it)
	b.bytes += len(it.data)
}

// putBack puts an item first.
func (b *inbox) putBack(it item) {
	b.items = append([]item{it}, b.items...)
	b.bytes += len(it.data)
}

// pop removes and returns the first item. A requested flush comes before the items, which may never
// end.
func (b *inbox) pop() (item, bool) {
	if b.flush {
		b.flush = false
		return item{kind: kindFlush}, true
	}
	if len(b.items) == 0 {
		return item{}, false
	}
	it := b.items[0]
	b.items[0] = item{}
	if b.items = b.items[1:]; len(b.items) == 0 {
		b.items = nil // an idle hub keeps no array
	}
	b.bytes -= len(it.data)
	return it, true
}

// popEvents removes and returns the first item if it is an events message.
func (b *inbox) popEvents() (item, bool) {
	if b.flush || len(b.items) == 0 || b.items[0].kind != kindEvents {
		return item{}, false
	}
	return b.pop()
}
