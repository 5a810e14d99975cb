package orgfeed

import (
	"context"
	"slices"
	"time"

	"hubcloud/domain"
)

const (
	// maxCatchUps is the most catchUps of one organization. A reader that none of them suits merges
	// the logs for itself.
	maxCatchUps = 4
	// catchUpIdle is how long a catch-up is kept after its last reader: clients reconnect one after
	// the other.
	catchUpIdle = 5 * time.Second
	// catchUpChunk is the most events that a catch-up reads at once.
	catchUpChunk = 256
	// arenaBytes is about how many bytes of frames share an allocation.
	arenaBytes = 32 << 10
)

// catchUp is a merge that several lagging readers share: the merge of all logs of one organization
// from one position on, of which it holds the newest events. The reader that needs the next events
// reads them for all. A reader that is slower than the others falls behind the catch-up, and no
// reader waits for it.
//
// It yields what a reader at its start position would.
type catchUp struct {
	feed *Feed
	org  string
	// turn has an entry while a reader reads events for all. merge, nil before the first, and
	// arena, for the next frames, belong to that reader.
	turn  chan struct{}
	merge *merge
	arena []byte

	span
	// The span's mutex guards the fields below.

	// complete is the Complete of the position after the last event.
	complete int64
	// until are the times at which the catch-up ends; nil while they are not known.
	until []int64
	// end is nil while events may follow.
	end *catchUpEnd
	// left is how many events of the merge are not among the entries yet, and next the number of
	// the ring's first entry after the merge, as of the last read.
	left, next uint64
}

// catchUpEnd reports that no event follows in a catch-up: it has everything up to until, which is a
// position with that Complete.
type catchUpEnd struct {
	until    []int64
	complete int64
}

// joinCatchUp returns a catch-up that has everything after a position, and the place of the
// position in it; nil if there is none and no more may be begun. The caller counts as a reader of
// it until Detach.
func (f *Feed) joinCatchUp(org string, at Position) (p *catchUp, number uint64, times []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.catchUps[org]
	for _, p := range all {
		if number, times, ok := p.join(at); ok {
			return p, number, times
		}
	}
	if f.closed || len(all) >= maxCatchUps {
		return nil, 0, nil
	}
	p = &catchUp{feed: f, org: org, turn: make(chan struct{}, 1), complete: at.Complete}
	p.init(f, slices.Clone(at.Times))
	p.Attach()
	f.catchUps[org] = append(all, p)
	return p, 0, slices.Clone(at.Times)
}

// dropCatchUps removes the catchUps that have had no reader since before. Readers join under f.mu,
// so none can join in between.
func (f *Feed) dropCatchUps(before time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for org, all := range f.catchUps {
		all = slices.DeleteFunc(all, func(p *catchUp) bool { return p.closeIdle(before) })
		if f.catchUps[org] = all; len(all) == 0 {
			delete(f.catchUps, org)
		}
	}
}

// closeIdle closes the catch-up if it has had no reader since before, and reports whether it has.
func (p *catchUp) closeIdle(before time.Time) bool {
	idle := p.IdleSince(before)
	if idle {
		p.Lock()
		defer p.Unlock()
		p.End(domain.ErrEventsClosed)
	}
	return idle
}

// join finds a position in the catch-up. ok is false if the catch-up does not have everything after
// it, or nothing else.
func (p *catchUp) join(at Position) (number uint64, times []int64, ok bool) {
	if number, times, ok = p.find(at); !ok {
		return 0, nil, false
	}
	p.Lock()
	passed := p.until != nil && at.includes(p.until) || p.end != nil && at.includes(p.last)
	p.Unlock()
	if passed {
		return 0, nil, false
	}
	p.Attach()
	return number, times, true
}

// from returns the entries from a number on, or the end if there are none. ok is false if the
// catch-up no longer has the first.
func (p *catchUp) from(number uint64) (entries []entry, end *catchUpEnd, ok bool) {
	p.Lock()
	defer p.Unlock()
	entries, ok = p.From(number)
	if ok && len(entries) == 0 {
		end = p.end
	}
	return entries, end, ok
}

// read reads events up to the end of the ring until the catch-up has, or has had, an entry with a
// number, or has ended.
func (p *catchUp) read(ctx context.Context, r *ring, number uint64) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if entries, end, ok := p.from(number); !ok || len(entries) > 0 || end != nil {
		return nil // another reader has read them
	}
	if p.merge == nil {
		if err := p.begin(ctx, r); err != nil {
			return err
		}
	}
	return p.feed.withMergeSlot(ctx, r.org, func() error {
		defer p.merge.rest()
		for range max(1, min(catchUpChunk, p.feed.cfg.RingEvents/2)) {
			log, err := p.merge.peek(ctx)
			if err != nil {
				return err
			}
			if log == nil {
				p.count()
				p.finish()
				return nil
			}
			if err := p.push(log); err != nil {
				return err
			}
			p.merge.advance()
		}
		p.count()
		return nil
	})
}

// begin begins the merge.
func (p *catchUp) begin(ctx context.Context, r *ring) error {
	m, err := p.feed.newMerge(ctx, r, &domain.EventFilter{}, Position{Times: p.last})
	if err != nil {
		return err
	}
	p.merge = m
	p.Lock()
	defer p.Unlock()
	p.until = m.until
	return nil
}

// push appends the next event of the merge, which is the first of a log.
func (p *catchUp) push(log *mergedLog) error {
	event, isGap, err := log.event()
	if err != nil {
		return err
	}
	p.Lock()
	defer p.Unlock()
	// Everything after the event is later, apart from what is received late.
	p.complete = max(p.complete, min(p.merge.complete, log.next/int64(time.Millisecond)))
	e := entry{
		group: log.group, time: log.next, before: p.last[log.group], complete: p.complete,
		hub: log.backlog.Hub(), epoch: log.backlog.Epoch().At(event.Seq), seq: event.Seq,
		gap: isGap, received: time.Now(),
	}
	p.last[log.group] = log.next
	id := Position{Complete: p.complete, Times: p.last}.String()
	if size := frameBytes(id, event); cap(p.arena)-len(p.arena) < size {
		p.arena = make([]byte, 0, max(size, arenaBytes))
	}
	e.event = withID(p.arena, id, event)
	p.arena = p.arena[:len(p.arena)+len(e.event.Frame)]
	p.Push(e)
	return nil
}

// finish ends the catch-up at the end of the merge.
func (p *catchUp) finish() {
	p.Lock()
	defer p.Unlock()
	p.end = &catchUpEnd{p.until, p.merge.complete}
	p.merge, p.arena = nil, nil
}
