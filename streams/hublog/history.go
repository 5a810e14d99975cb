package hublog

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
)

const (
	// loadPause is the pause before a run is asked for again that a broker, or a copy of the log that lags behind, does not
	// give; it doubles up to maxLoadPause, for readPatience in all.
	loadPause    = 20 * time.Millisecond
	maxLoadPause = 500 * time.Millisecond
	// loadTries is how often a run is asked for when the answers make no sense.
	loadTries = 4
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

// read gives up to limit events with sequences from from to to, both included, and the sequence up to which it has looked: there is no other event
// between from and that. The sequences up to to must have been stored. The slice is shared: it may be appended to, but not changed. The error is a
// *dropped when something of what it would have given is gone.
func (h *history) read(ctx context.Context, t *tail, from, to uint64, limit int) (events []domain.EncodedEvent, through uint64, err error) {
	through = from - 1
	for through < to && len(events) < limit {
		found, covered, wait := h.cache.find(t.hub, t.tag, through+1)
		if wait != nil {
			select {
			case <-wait:
			case <-ctx.Done():
				return nil, 0, ctx.Err()
			}
			continue
		}
		if covered == 0 {
			if found, covered, err = h.load(ctx, t, through+1, to, limit-len(events)); err != nil {
				return nil, 0, err
			}
			if covered == 0 {
				continue
			}
		}
		found, through = clip(found, covered, to, limit-len(events))
		events = join(events, found)
	}
	return events, through, nil
}

// join appends more to events, both of which others may have too.
func join(events, more []domain.EncodedEvent) []domain.EncodedEvent {
	if events == nil {
		return more[:len(more):len(more)]
	}
	return append(events, more...)
}

// clip cuts events down to those up to the sequence to and to limit of them, and says how far they reach.
func clip(events []domain.EncodedEvent, covered, to uint64, limit int) ([]domain.EncodedEvent, uint64) {
	for len(events) > 0 && events[len(events)-1].Seq > to {
		events = events[:len(events)-1]
	}
	if len(events) > limit {
		return events[:limit], events[limit-1].Seq
	}
	return events, min(covered, to)
}

// load brings a run of messages into the cache, from from on: as many as limit asks for, but not beyond to, nor into what the cache has or somebody
// else is loading. It gives the events from from on, and the sequence up to which that is; 0 says that another load has come before it.
func (h *history) load(ctx context.Context, t *tail, from, to uint64, limit int) (events []domain.EncodedEvent, through uint64, err error) {
	// A little more than is asked for: a message costs less than the next request.
	to = min(to, max(from+uint64(limit)-1, blockEnd(from)))
	l := h.cache.begin(t.hub, t.tag, from, to)
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
		if !m.event || m.tag != t.at(m.seq) || m.seq <= t.after {
			continue
		}
		e, err := m.encode(m.tag)
		if err != nil {
			h.logs.cfg.Log.Error("unreadable event in a hub log", "hub_id", t.hub, "error", err)
			continue
		}
		events = append(events, e)
	}
	first := messages[0].seq
	h.cache.add(l, first, l.to, events)
	if first > from {
		return nil, 0, &dropped{first}
	}
	// A load may begin earlier than it was asked to.
	for len(events) > 0 && events[0].Seq < from {
		events = events[1:]
	}
	return events, l.to, nil
}

// fetch reads the messages from from to to, of which the first may have expired; there is at least one, and to is the last.
//
// Any copy of the log may answer a direct get, also one that is behind. It cannot answer with other messages than the leader
// has. What is missing at its end is asked for again; what is missing at its beginning has expired only if the leader says so.
func (h *history) fetch(ctx context.Context, t *tail, from, to uint64) ([]stored, error) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	var messages []stored
	failures := 0
	for pause := loadPause; ; pause = min(2*pause, maxLoadPause) {
		next := from
		if len(messages) > 0 {
			next = messages[len(messages)-1].seq + 1
		}
		got, err := t.shard.getRange(ctx, t.hub, next, int(to-next+1))
		if err == nil && len(got) > 0 && got[0].seq > next {
			// What is missing has expired, and then so has everything before it.
			messages = nil
		}
		for i, m := range got {
			if m.seq > to {
				got = got[:i]
				break
			}
			if i > 0 && m.seq != got[i-1].seq+1 {
				messages = nil
			}
			messages = append(messages, m)
		}
		h.logs.metrics.read.Add(float64(len(got)))
		complete := len(messages) > 0 && messages[len(messages)-1].seq == to
		switch {
		case complete && messages[0].seq == from:
			return messages, nil
		case len(got) > 0 && !complete:
			continue
		case err == nil:
			// Nothing at all is no proof of anything: a copy may lag behind, the broker may be away, everything may have expired.
			var b bounds
			b, err = h.logs.bounds(ctx, t.hub, to)
			switch {
			case err != nil:
			case b.first > to:
				return nil, &dropped{b.first}
			case complete && b.first >= messages[0].seq:
				return messages, nil
			default:
				err = errBehind
				if complete {
					messages = nil
				}
			}
		}
		if !streams.Passing(err) {
			failures++
		}
		if ctx.Err() != nil || failures == loadTries {
			return nil, fmt.Errorf("read the log of %s from sequence %d to %d: %w", t.hub, from, to, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, fmt.Errorf("read the log of %s from sequence %d to %d: %w", t.hub, from, to, err)
		}
	}
}
