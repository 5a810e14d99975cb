package tap

import (
	"context"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/feed"
)

// hub is the state of one hub's log in a tap.
type hub struct {
	id domain.HubID
	// at is the position up to which everything has been delivered. It is valid if placed is true;
	// otherwise it is not known yet where to begin.
	at     feed.DecodedCursor
	placed bool
	// known is the highest sequence that the log is known to have.
	known uint64
	// unread is the last sequence of a gap before the first position: events that were wanted but
	// had expired. It is reported before the first record.
	unread uint64
	// comparedOn is the connection on which the message at the position was read or compared. Only
	// the worker uses it.
	comparedOn uint64
	// due reports that the hub is queued or has a worker, and again that it must be queued once
	// more afterwards.
	due, again bool
	// fresh are messages of the feed with consecutive sequences, which need not be read
	// from the log.
	fresh []feed.Message
	// failures counts the reads that failed in a row. Only the worker uses it.
	failures int
	// short is since when the log has ended at shortEnd, which is before the position; zero while
	// it does not. Only the worker uses them.
	short    time.Time
	shortEnd uint64
}

// hubs has the hubs of a tap and the queue of those that are due. A worker owns the hub it has
// taken until it puts it back, except for the fields known and again. The position changes only
// under the lock.
type hubs struct {
	mu   sync.Mutex
	cond *sync.Cond
	all  map[domain.HubID]*hub
	// queue has the due hubs, longest due first. taken counts the hubs that workers have.
	queue []*hub
	taken int
	// open reports that hubs are queued. Before, new events are only recorded.
	open bool
	// endless reports that the tap follows new events: an empty queue is not the end.
	endless bool
	// moved counts the changes of positions.
	moved uint64
	// freshBytes is the approximate memory of the fresh messages of all hubs.
	freshBytes int
}

const (
	// maxFresh limits the fresh messages of one hub, and maxFreshBytes of all hubs. Messages
	// beyond these limits are read from the log.
	maxFresh      = feed.MaxRead
	maxFreshBytes = 16 << 20
	// freshOverhead is the approximate memory of a message without its envelope.
	freshOverhead = 300
)

func newHubs(endless bool) *hubs {
	h := &hubs{all: map[domain.HubID]*hub{}, endless: endless}
	h.cond = sync.NewCond(&h.mu)
	return h
}

// restore adds a hub at the position of a checkpoint.
func (hs *hubs) restore(id domain.HubID, at feed.DecodedCursor) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.all[id] = &hub{id: id, at: at, placed: true, known: at.Seq}
}

// announce records a message of the feed. It need not be read from the log.
func (hs *hubs) announce(id domain.HubID, m feed.Message) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.hub(id)
	if m.Seq <= h.known {
		if m.Seq > h.at.Seq {
			hs.enqueue(h) // the sequence was assigned again: the broker lost the first message
		}
		return
	}
	h.known = m.Seq
	if n := len(h.fresh); n >= maxFresh || n > 0 && h.fresh[n-1].Seq+1 != m.Seq {
		hs.dropFresh(h)
	}
	if hs.freshBytes < maxFreshBytes {
		h.fresh = append(h.fresh, m)
		hs.freshBytes += freshSize(m)
	}
	hs.enqueue(h)
}

func freshSize(m feed.Message) int {
	if m.Event == nil {
		return freshOverhead + len(m.Command)
	}
	return freshOverhead + len(m.Event.Envelope)
}

// dropFresh discards a hub's fresh messages. They are read from the log instead.
func (hs *hubs) dropFresh(h *hub) {
	for _, m := range h.fresh {
		hs.freshBytes -= freshSize(m)
	}
	h.fresh = nil
}

// takeFresh removes and returns the fresh messages that directly follow the hub's position. It
// returns none if the log must be read.
func (hs *hubs) takeFresh(h *hub) []feed.Message {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	fresh := h.fresh
	for len(fresh) > 0 && fresh[0].Seq <= h.at.Seq {
		fresh = fresh[1:]
	}
	if len(fresh) > 0 && fresh[0].Seq != h.at.Seq+1 {
		return nil // the log is read up to there first
	}
	hs.dropFresh(h)
	return fresh
}

// hub returns the hub with the given id, and adds it without a position if it is new. The caller
// holds the lock.
func (hs *hubs) hub(id domain.HubID) *hub {
	h := hs.all[id]
	if h == nil {
		h = &hub{id: id}
		hs.all[id] = h
	}
	return h
}

// update records the state of a hub's log. For a hub without a position it calls place, which may
// set one and must not keep the hub.
func (hs *hubs) update(id domain.HubID, s feed.State, place func(*hub)) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.hub(id)
	if !h.placed && !h.due {
		place(h)
		if h.placed {
			hs.moved++
		}
	}
	if s.Last > h.known {
		h.known = s.Last
	}
	// A log that seems shorter than the position may have been listed before the last read: the
	// worker finds out.
	if h.known > h.at.Seq || s.Last < h.at.Seq || h.unread > 0 {
		hs.enqueue(h)
	}
}

// start lets hubs become due. Further calls do nothing.
func (hs *hubs) start() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if hs.open {
		return
	}
	hs.open = true
	for _, h := range hs.all {
		if h.known > h.at.Seq || h.again {
			h.again = false
			hs.enqueue(h)
		}
	}
	hs.cond.Broadcast()
}

// enqueue makes a hub due. The caller holds the lock.
func (hs *hubs) enqueue(h *hub) {
	if h.due || !hs.open {
		h.again = true
		return
	}
	h.due = true
	hs.queue = append(hs.queue, h)
	hs.cond.Signal()
}

// take waits for a due hub and returns it to a worker. It returns nil when ctx has ended, or when
// all hubs are done and the tap does not follow new events.
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

// wakeAll wakes all waiting workers, so that they check their context.
func (hs *hubs) wakeAll() {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.cond.Broadcast()
}

// put takes a hub back from its worker. The hub is queued once more if again is set or its log has
// more.
func (hs *hubs) put(h *hub, again bool) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	hs.taken--
	h.due = false
	if again || h.again || h.known > h.at.Seq {
		h.again = false
		hs.enqueue(h)
	}
	if !hs.endless && hs.taken == 0 && len(hs.queue) == 0 {
		hs.cond.Broadcast()
	}
}

// known returns the highest sequence that the hub's log is known to have.
func (hs *hubs) known(h *hub) uint64 {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	return h.known
}

// move sets a hub's position. Only the hub's worker calls it.
func (hs *hubs) move(h *hub, at feed.DecodedCursor) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.at, h.placed, h.unread = at, true, 0
	hs.moved++
	if n := len(h.fresh); n > 0 && h.fresh[n-1].Seq <= at.Seq {
		hs.dropFresh(h) // the log was read this far
	}
}

// displace removes a hub's position. Only the hub's worker calls it.
func (hs *hubs) displace(h *hub) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h.at, h.placed = feed.DecodedCursor{}, false
	hs.moved++
}

// shorten records that a hub's log ends at last. It does nothing if more than expected has become
// known meanwhile.
func (hs *hubs) shorten(h *hub, expected, last uint64) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h.known == expected {
		h.known = last
	}
}

// positions returns the positions of all hubs that have one, and the number of changes so far.
func (hs *hubs) positions() (map[domain.HubID]feed.DecodedCursor, uint64) {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	all := make(map[domain.HubID]feed.DecodedCursor, len(hs.all))
	for id, h := range hs.all {
		if h.placed {
			all[id] = h.at
		}
	}
	return all, hs.moved
}

// changes returns the number of changes of positions. It returns 0 until every log has been listed:
// before that, a checkpoint would miss hubs that have a log.
func (hs *hubs) changes() uint64 {
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if !hs.open {
		return 0
	}
	return hs.moved
}
