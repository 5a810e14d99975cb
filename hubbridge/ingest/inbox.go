package ingest

import (
	"hubcloud/hubbridge/presence"
)

// kind is what an item is.
type kind uint8

const (
	kindHello kind = iota
	kindEvents
	kindObservation
	kindFlush
)

// item is one thing to do for a hub.
type item struct {
	kind kind
	// data is a message of the hub.
	data        []byte
	observation *presence.Observation
}

// inbox is a hub's queue. It is guarded by its shard's mutex.
type inbox struct {
	items []item
	bytes int
	// scheduled says that the session is in its shard's ready queue, with a worker, or paused.
	scheduled bool
	paused    bool
	// flush asks for the ledger to be written; waiting says that it will be asked for.
	flush, waiting bool
}

func (b *inbox) empty() bool { return len(b.items) == 0 && !b.flush }

func (b *inbox) push(it item) {
	b.items = append(b.items, it)
	b.bytes += len(it.data)
}

// putBack puts an item first.
func (b *inbox) putBack(it item) {
	b.items = append([]item{it}, b.items...)
	b.bytes += len(it.data)
}

// pop takes the first item; the ledger comes before the rest, which may never end.
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
		b.items = nil // an idle hub holds no queue
	}
	b.bytes -= len(it.data)
	return it, true
}

// popEvents takes the first item if it is an events message.
func (b *inbox) popEvents() (item, bool) {
	if b.flush || len(b.items) == 0 || b.items[0].kind != kindEvents {
		return item{}, false
	}
	return b.pop()
}
