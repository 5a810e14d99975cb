package hublog

import (
	"context"
	"sync"

	"hubcloud/domain"
)

// Group follows many logs and wakes its owner for all of them through one channel, so that one
// goroutine serves a client that watches hundreds of hubs. It must be used and closed by one
// goroutine.
//
// Logs with events are read in turn, one batch each.
type Group struct {
	logs    *Logs
	readers map[domain.HubID]*Reader
	ready   chan struct{}

	// mu guards queue and the readers' queued. Tails lock it while they hold their own lock, so no
	// method of a tail may be called under it.
	mu sync.Mutex
	// queue has the readers that may have events, each once.
	queue []*Reader
}

// NewGroup returns a group that follows no log.
func (l *Logs) NewGroup() *Group {
	return &Group{logs: l, readers: map[domain.HubID]*Reader{}, ready: make(chan struct{}, 1)}
}

// Follow adds a hub's log, from the cursor after or, if it is empty, from the log's end. A hub that
// is followed already restarts there. Errors are those of Logs.Follow.
func (g *Group) Follow(ctx context.Context, hub domain.HubID, after string) error {
	g.Leave(hub)
	r, err := g.logs.Follow(ctx, hub, after)
	if err != nil {
		return err
	}
	g.readers[hub] = r
	r.group = g
	r.tail.addGrouped(r)
	g.enqueue(r) // events stored before addGrouped have not woken the group
	return nil
}

// Leave removes a hub's log. It does nothing for a hub that is not followed.
func (g *Group) Leave(hub domain.HubID) {
	r, ok := g.readers[hub]
	if !ok {
		return
	}
	delete(g.readers, hub)
	r.tail.removeGrouped(r)
	r.Close()
}

// Next returns the next events of one hub, at most limit; none when no log has any. An error is the
// hub's, as of Reader.Next; its log is not read again until it is followed again.
func (g *Group) Next(ctx context.Context, limit int) (domain.HubID, []domain.EncodedEvent, error) {
	for r := g.dequeue(); r != nil; r = g.dequeue() {
		if r.closed {
			continue
		}
		events, err := r.Next(ctx, limit)
		if err != nil {
			return r.tail.hub, nil, err
		}
		if len(events) > 0 {
			g.enqueue(r)
			return r.tail.hub, events, nil
		}
	}
	return "", nil, nil
}

// Ready returns a channel, always the same, that receives once Next may have events or an error.
func (g *Group) Ready() <-chan struct{} { return g.ready }

// Cursor returns the cursor to continue a hub's log from, as Reader.Cursor; "" for a hub that
// is not followed.
func (g *Group) Cursor(hub domain.HubID) string {
	if r, ok := g.readers[hub]; ok {
		return r.Cursor()
	}
	return ""
}

// Close removes all logs. Further calls do nothing.
func (g *Group) Close() {
	for hub := range g.readers {
		g.Leave(hub)
	}
}

// enqueue adds a reader to the queue, unless it is queued, and wakes the owner.
func (g *Group) enqueue(r *Reader) {
	g.mu.Lock()
	if !r.queued {
		r.queued = true
		g.queue = append(g.queue, r)
	}
	g.mu.Unlock()
	select {
	case g.ready <- struct{}{}:
	default:
	}
}

// dequeue removes the first reader from the queue; nil when the queue is empty. Events stored from
// then on queue the reader again.
func (g *Group) dequeue() *Reader {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.queue = nil
		return nil
	}
	r := g.queue[0]
	g.queue[0] = nil
	g.queue, r.queued = g.queue[1:], false
	return r
}
