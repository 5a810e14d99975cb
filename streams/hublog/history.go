package hublog

import (
	"context"
	"fmt"
	"math"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// loadPause is the pause before a run is asked for again that a broker, or a copy of the log
	// that lags behind, does not give; it doubles up to maxLoadPause, for readPatience in all.
	loadPause    = 20 * time.Millisecond
	maxLoadPause = 500 * time.Millisecond
	// loadTries is how often a run is asked for when the answers make no sense.
	loadTries = 4
	// maxShardLoads is how many loads of one shard there are at once. What is on its way to readers
	// is bounded by that.
	maxShardLoads = 4
)

// errBehind says that a copy of the log lacks what its leader has.
var errBehind = fmt.Errorf("%w: a copy of the log lacks what its leader has", streams.ErrDoubtful)

// dropped says that messages from a wanted sequence on are gone, and what the log begins with now.
type dropped struct{ first uint64 }

func (d *dropped) Error() string { return fmt.Sprintf("the log begins with sequence %d now", d.first) }

// history reads what lies behind the rings.
type history struct {
	logs  *Logs
	cache *blockCache
}

func newHistory(l *Logs, bytes int64) *history {
	return &history{logs: l, cache: newBlockCache(bytes, l.metrics)}
}

// room is how much a read gives at most: events, and bytes of envelopes.
type room struct {
	events, bytes int
	// over says that an event follows which was not given for its size.
	over bool
}

// unbounded is for those who hold what they read for no longer than it takes to look at it.
const unbounded = math.MaxInt

// full reports whether nothing more may be read.
func (r room) full() bool { return r.events <= 0 || r.over }

// take returns as many of events as there is room for, and the room that is left. The first event
// of all is given whatever its size.
func (r room) take(events []domain.EncodedEvent, first bool) ([]domain.EncodedEvent, room) {
	for i := range events {
		size := len(events[i].Envelope)
		if r.events <= 0 {
			return events[:i], r
		}
		if size > r.bytes && (i > 0 || !first) {
			r.over = true
			return events[:i], r
		}
		r.events, r.bytes = r.events-1, max(r.bytes-size, 0)
	}
	return events, r
}

// read gives events with sequences from from to to, both included, as many as there is room for,
// and the sequence up to which it has looked: there is no other event between from and that. The
// sequences up to to must have been stored. The slice is shared: it may be appended to, but not
// changed. The error is a *dropped when something of what it would have given is gone. The room is
// what is left of it; first says that one event is given whatever its size.
func (h *history) read(ctx context.Context, t *tail, from, to uint64, wanted room, first bool) (
	events []domain.EncodedEvent, through uint64, left room, err error,
) {
	left = wanted
	through = from - 1
	for through < to && !left.full() {
		found, covered, wait := h.cache.find(t.hub, t.epoch.ID, through+1)
		if wait != nil {
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, 0, left, ctx.Err()
			}
			continue
		}
		if covered == 0 {
			if found, covered, err = h.load(ctx, t, through+1, to, left.events); err != nil {
				return nil, 0, left, err
			}
			if covered == 0 {
				continue
			}
		}
		found, through, left = clip(found, covered, to, left, first && len(events) == 0)
		events = join(events, found)
	}
	return events, through, left, nil
}

// join appends more to events, both of which others may have too.
func join(events, more []domain.EncodedEvent) []domain.EncodedEvent {
	if events == nil {
		return more[:len(more):len(more)]
	}
	return append(events, more...)
}

// clip cuts events down to those up to the sequence to and to those there is room for, and says how
// far they reach.
func clip(
	events []domain.EncodedEvent, covered, to uint64, left room, first bool,
) ([]domain.EncodedEvent, uint64, room) {
	for len(events) > 0 && events[len(events)-1].Seq > to {
		events = events[:len(events)-1]
	}
	taken, left := left.take(events, first)
	switch {
	case len(taken) == len(events):
		return taken, min(covered, to), left
	case len(taken) == 0:
		return taken, events[0].Seq - 1, left
	default:
		return taken, taken[len(taken)-1].Seq, left
	}
}

// load brings a run of messages into the cache, from from on: as many as limit asks for, but not
// beyond to, nor into what the cache has or somebody else is loading. It gives the events from from
// on, and the sequence up to which that is; 0 says that another load has come before it.
func (h *history) load(
	ctx context.Context, t *tail, from, to uint64, limit int,
) (events []domain.EncodedEvent, through uint64, err error) {
	// A little more than is asked for: a message costs less than the next request.
	to = min(to, max(from+uint64(limit)-1, blockEnd(from)))
	release, err := h.place(ctx, t.shard)
	if err != nil {
		return nil, 0, err
	}
	defer release()
	l := h.cache.begin(t.hub, t.epoch.ID, from, to)
	if l == nil {
		return nil, 0, nil
	}
	defer h.cache.finish(l)
	h.logs.metrics.cacheMisses.Inc()
	messages, err := h.fetch(ctx, t, l.from, l.to)
	if err != nil {
		return nil, 0, err
	}
	events = make([]domain.EncodedEvent, 0, len(messages))
	for _, m := range messages {
		if !m.event || !t.epoch.Has(m.seq, m.epoch) {
			continue
		}
		e, err := m.encode()
		if err != nil {
			h.logs.cfg.Log.Error("unreadable event in a hub log", "hub_id", t.hub, "error", err)
			continue
		}
		events = append(events, e)
	}
	first, last := messages[0].seq, messages[len(messages)-1].seq
	h.cache.add(l, first, last, events)
	if first > from {
		return nil, 0, &dropped{first}
	}
	// A load may begin earlier than it was asked to.
	for len(events) > 0 && events[0].Seq < from {
		events = events[1:]
	}
	return events, last, nil
}

// place waits until there may be one load more of the shard.
func (h *history) place(ctx context.Context, s *shard) (release func(), err error) {
	select {
	case s.loads <- struct{}{}:
		return func() { <-s.loads }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fetch reads messages from from on, up to to or as far as one answer of the broker goes. The first
// may have expired; there is at least one.
//
// Any copy of the log may answer a direct get, also one that is behind. It cannot answer with other
// messages than the leader has. What is missing at its end is asked for again by whoever needs it;
// what is missing at its beginning has expired only if the leader says so.
func (h *history) fetch(ctx context.Context, t *tail, from, to uint64) ([]stored, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	var messages []stored
	failures := 0
	for pause := loadPause; ; pause = min(2*pause, maxLoadPause) {
		messages = messages[:0]
		got, err := t.shard.getRange(ctx, t.hub, from, int(to-from+1))
		for i, m := range got {
			if m.seq > to {
				got = got[:i]
				break
			}
			if i > 0 && m.seq != got[i-1].seq+1 {
				messages = messages[:0]
			}
			messages = append(messages, m)
		}
		h.logs.metrics.read.Add(float64(len(got)))
		some := len(messages) > 0
		switch {
		case some && messages[0].seq == from:
			return messages, nil
		case err == nil:
			// Nothing at all is no proof of anything: a copy may lag behind, the broker may be
			// away, everything may have expired.
			var b bounds
			b, err = h.logs.bounds(ctx, t.hub, to)
			switch {
			case err != nil:
			case b.first > to:
				return nil, &dropped{b.first}
			case some && b.first >= messages[0].seq:
				return messages, nil
			default:
				err = errBehind
			}
		}
		if !streams.Passing(err) {
			failures++
		}
		if ctx.Err() != nil || failures == loadTries {
			return nil, fmt.Errorf(
				"read the log of %s from sequence %d to %d: %w", t.hub, from, to, err,
			)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf(
				"read the log of %s from sequence %d to %d: %w", t.hub, from, to, err,
			)
		}
	}
}
