package tap

import (
	"context"
	"sync"

	"hubcloud/domain"
	"hubcloud/streams/hublog"
)

// hub is where a tap stands with one hub's log.
type hub struct {
	id domain.HubID
	// at is the position up to which everything was delivered, and placed says that there is one:
	// without, nobody knows where to begin.
	at     hublog.Position
	placed bool
	// known is the last sequence that the log is known to have.
	known uint64
	// unread is the last of the sequences that were gone before there was a position, although they
	// were wanted, and are still to be told.
	unread uint64
	// epoch is the connection's, counted from 1, in which the message at the position was read or
	// compared. The worker's.
	epoch uint64
	// due says that it waits for a worker, or has one; again, that it is due once more after that.
	due, again bool
	// fresh are messages that came through the feed and need not be read from the log, one behind
	// the other.
	fresh []hublog.Message
	// failures is how often the last read has failed in a row. The worker's.
	failures int
}

// hubs are the hubs of a tap, and the queue of those that are due. What a worker has taken is its
// own until it gives it back, but for known and again; at is changed under the lock, too.
type hubs struct {
	mu   sync.Mutex
	cond *sync.Cond
	all  map[domain.HubID]*hub
	// queue has those that are due, longest first; taken counts those that workers have.
	queue []*hub
	taken int
	// open says that hubs become due; before, what is heard of is only remembered.
	open bool
	// endless says that there may be more when nothing is due.
	endless bool
	// moved counts changes of positions.
	moved uint64
	// freshBytes is about what the fresh messages of all hubs take.
	freshBytes int
}

const (
	// maxFresh bounds the fresh messages of one hub, maxFreshBytes those of all. What is beyond is
	// read from the log.
	maxFresh      = hublog.MaxRead
	maxFreshBytes = 16 << 20
	// freshOverhead is about what one takes beside its envelope.
	freshOverhead = 300
)

func newHubs(endless bool) *hubs {
	h := &hubs{all: map[domain.HubID]*hub{}, endless: endless}
	h.cond = sync.NewCond(&h.mu)
	return h
}

// restore puts a hub at a position that an earlier tap has reached.
func (hs *hubs) restore(id domain.HubID, at hublog.Position) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.all[id] = &hub{id: id, at: at, placed: true, known: at.Seq}
}

// announce says that a hub's log has got as far as a message, which need not be read from the log
// if it is certain.
func (hs *hubs) announce(id domain.HubID, m hublog.Message, certain bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.get(id)
	if m.Seq <= h.known {
		if m.Seq > h.at.Seq {
			hs.markLocked(h) // announced anew: the former announcement may have come to nothing
		}
		return
	}
	h.known = m.Seq
	if n := len(h.fresh); n >= maxFresh || n > 0 && h.fresh[n-1].Seq+1 != m.Seq {
		hs.forget(h)
	}
	if certain && hs.freshBytes < maxFreshBytes {
		h.fresh = append(h.fresh, m)
		hs.freshBytes += freshSize(m)
	}
	hs.markLocked(h)
}

func freshSize(m hublog.Message) int {
	if m.Event == nil {
		return freshOverhead + len(m.Command)
	}
	return freshOverhead + len(m.Event.Envelope)
}

// forget leaves it to the log what came through the feed.
func (hs *hubs) forget(h *hub) {
	for _, m := range h.fresh {
		hs.freshBytes -= freshSize(m)
	}
	h.fresh = nil
}

// takeFresh gives the fresh messages that follow a hub's position without a gap; none says that the
// log has to be read.
func (hs *hubs) takeFresh(h *hub) []hublog.Message {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	fresh := h.fresh
	for len(fresh) > 0 && fresh[0].Seq <= h.at.Seq {
		fresh = fresh[1:]
	}
	if len(fresh) > 0 && fresh[0].Seq != h.at.Seq+1 {
		return nil // the log is read up to there first
	}
	hs.forget(h)
	return fresh
}

// get gives a hub, a new one at no position if it was unheard of. The lock is held.
func (hs *hubs) get(id domain.HubID) *hub {
	h := hs.all[id]
	if h == nil {
		h = &hub{id: id}
		hs.all[id] = h
	}
	return h
}

// listed takes what a log was seen to hold. first is called for a hub without a position: it may
// give it one, and does not keep it.
func (hs *hubs) listed(id domain.HubID, s hublog.State, first func(*hub)) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.get(id)
	if !h.placed && !h.due {
		first(h)
		if h.placed {
			hs.moved++
		}
	}
	if s.Last > h.known {
		h.known = s.Last
	}
	// A log that is shorter than what was read of it may only have been listed earlier: the worker
	// looks closer.
	if h.known > h.at.Seq || s.Last < h.at.Seq || h.unread > 0 {
		hs.markLocked(h)
	}
}

// openUp begins to make due what was heard of. Opening again does nothing.
func (hs *hubs) openUp() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.open {
		return
	}
	hs.open = true
	for _, h := range hs.all {
		if h.known > h.at.Seq || h.again {
			h.again = false
			hs.markLocked(h)
		}
	}
	hs.cond.Broadcast()
}

// markLocked makes a hub due.
func (hs *hubs) markLocked(h *hub) {
	if h.due || !hs.open {
		h.again = true
		return
	}
	h.due = true
	hs.queue = append(hs.queue, h)
	hs.cond.Signal()
}

// take waits for a hub that is due and gives it to a worker. None is the end: ctx's, or that
// nothing is due any more.
func (hs *hubs) take(ctx context.Context) *hub {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	for {
		switch {
		case ctx.Err() != nil:
			return nil
		case len(hs.queue) > 0:
			h := hs.queue[0]
			hs.queue[0] = nil
			hs.queue = hs.queue[1:]
			h.again = false
			hs.taken++
			return h
		case hs.open && !hs.endless && hs.taken == 0:
			return nil
		}
		hs.cond.Wait()
	}
}

// wakeAll has those who wait look at their context.
func (hs *hubs) wakeAll() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.cond.Broadcast()
}

// give takes a hub back from its worker, which is due again when it has more or asks for it.
func (hs *hubs) give(h *hub, again bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.taken--
	h.due = false
	if again || h.again || h.known > h.at.Seq {
		h.again = false
		hs.markLocked(h)
	}
	if !hs.endless && hs.taken == 0 && len(hs.queue) == 0 {
		hs.cond.Broadcast()
	}
}

// known gives the last sequence that a log is known to have.
func (hs *hubs) known(h *hub) uint64 {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return h.known
}

// move sets the position of a hub whose worker calls.
func (hs *hubs) move(h *hub, at hublog.Position) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.at, h.placed, h.unread = at, true, 0
	hs.moved++
	if n := len(h.fresh); n > 0 && h.fresh[n-1].Seq <= at.Seq {
		hs.forget(h) // it was read meanwhile
	}
}

// displace takes the position of a hub away whose worker calls.
func (hs *hubs) displace(h *hub) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.at, h.placed = hublog.Position{}, false
	hs.moved++
}

// ends says that a log does not reach beyond last, which was thought to be further.
func (hs *hubs) ends(h *hub, thought, last uint64) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.known == thought {
		h.known = last
	}
}

// positions gives the position of every hub that has one, and how many changes there were up to
// then.
func (hs *hubs) positions() (map[domain.HubID]hublog.Position, uint64) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	all := make(map[domain.HubID]hublog.Position, len(hs.all))
	for id, h := range hs.all {
		if h.placed {
			all[id] = h.at
		}
	}
	return all, hs.moved
}

// changes is how many changes of positions there were; 0 until every log has been listed: before, a
// hub without a position may have a log.
func (hs *hubs) changes() uint64 {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if !hs.open {
		return 0
	}
	return hs.moved
}
