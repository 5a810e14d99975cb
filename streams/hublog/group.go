package hublog

import (
	"context"
	"sync"

	"hubcloud/domain"
)

// Group follows several logs at once and wakes its owner for all of them through one channel: so
// one goroutine serves a reader of hundreds of hubs, and a hub without events costs nothing but its
// place. It belongs to one goroutine, which also closes it.
//
// Logs take turns: one that has much to say gives a batch, then the others have theirs.
type Group struct {
	logs    *Logs
	readers map[domain.HubID]*Reader
	ready   chan struct{}

	// mu guards what the tails write: they hold their own lock then, so nothing is called with this
	// one held.
	mu  sync.Mutex
	due []*Reader
}

// NewGroup makes a group that follows nothing yet.
func (l *Logs) NewGroup() *Group {
	return &Group{logs: l, readers: map[domain.HubID]*Reader{}, ready: make(chan struct{}, 1)}
}

// Follow adds a hub's log, from behind the cursor after or, when that is empty, from its end now; a
// hub that is followed already begins there anew. ctx bounds all that is read of it. Errors are
// those of Logs.Follow.
func (g *Group) Follow(ctx context.Context, hub domain.HubID, after string) error {
	g.Leave(hub)
	r, err := g.logs.Follow(ctx, hub, after)
	if err != nil {
		return err
	}
	g.readers[hub] = r
	r.group = g
	r.tail.join(r)
	g.mark(r) // what was stored since it began has woken nobody
	return nil
}

// Leave follows a hub's log no longer. One that is not followed is left alone.
func (g *Group) Leave(hub domain.HubID) {
	r, ok := g.readers[hub]
	if !ok {
		return
	}
	delete(g.readers, hub)
	r.tail.leave(r)
	r.Close()
}

// Next gives up to limit events of the log whose turn it is, in the order of that log; no events
// say that none is there yet in any. The error is that hub's, as Reader.Next has it; its log has no
// further turn until it is followed again.
func (g *Group) Next(limit int) (domain.HubID, []domain.EncodedEvent, error) {
	for r := g.turn(); r != nil; r = g.turn() {
		if r.closed {
			continue
		}
		events, err := r.Next(limit)
		if err != nil {
			return r.tail.hub, nil, err
		}
		if len(events) > 0 {
			g.mark(r)
			return r.tail.hub, events, nil
		}
	}
	return "", nil, nil
}

// Ready gives a channel that has something once Next may have. It stays the same.
func (g *Group) Ready() <-chan struct{} { return g.ready }

// Position gives the cursor to go on from with a hub's log, as Reader.Position does; "" for one
// that is not followed.
func (g *Group) Position(hub domain.HubID) string {
	if r, ok := g.readers[hub]; ok {
		return r.Position()
	}
	return ""
}

// Close lets go of all logs. Closing again does nothing.
func (g *Group) Close() {
	for hub := range g.readers {
		g.Leave(hub)
	}
}

// mark gives a reader a turn, one at most.
func (g *Group) mark(r *Reader) {
	g.mu.Lock()
	if !r.due {
		r.due = true
		g.due = append(g.due, r)
	}
	g.mu.Unlock()
	select {
	case g.ready <- struct{}{}:
	default:
	}
}

// turn takes the reader whose turn it is; nil when nobody has one. Whatever is stored from then on
// gives it another.
func (g *Group) turn() *Reader {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.due) == 0 {
		g.due = nil
		return nil
	}
	r := g.due[0]
	g.due[0] = nil
	g.due, r.due = g.due[1:], false
	return r
}
