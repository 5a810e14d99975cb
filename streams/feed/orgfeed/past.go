package orgfeed

import (
	"context"
	"slices"
	"time"

	"hubcloud/domain"
)

const (
	// maxPasts is the most pasts of one organization. A reader that none of them suits merges the
	// logs for itself.
	maxPasts = 4
	// pastIdle is how long a past is kept after its last reader: clients reconnect one after the
	// other.
	pastIdle = 5 * time.Second
	// pastChunk is the most events that a past reads at once.
	pastChunk = 256
	// arenaBytes is about how many bytes of frames share an allocation.
	arenaBytes = 32 << 10
)

// past is what readers of one organization behind the ring share: the merge of all logs from one
// position on, of which it holds the newest events. The reader that needs the next events reads
// them for all. A reader that is slower than the others falls behind the past, and no reader waits
// for it.
//
// It yields what a reader at its start position would.
type past struct {
	feed *Feed
	org  string
	// turn has an entry while a reader reads events for all. merge, nil before the first, and
	// arena, for the next frames, belong to that reader.
	turn  chan struct{}
	merge *merge
	arena []byte

	window
	// The fields below are guarded by the window's mutex.

	// complete is the Complete of the position after the last event.
	complete int64
	// until are the times at which the past ends; nil while they are not known.
	until []int64
	// end is nil while events may follow.
	end *pastEnd
	// left is how many events of the merge are not among the entries yet, and next the number of
	// the ring's first entry after the merge, as of the last read.
	left, next uint64
	// readers counts the readers, of which the last has left at idle.
	readers int
	idle    time.Time
}

// pastEnd reports that no event follows in a past: it has everything up to until, which is a
// position with that Complete.
type pastEnd struct {
	until    []int64
	complete int64
}

// joinPast returns a past that has everything after a position, and the place of the position in
// it; nil if there is none and no more may be begun. The caller counts as a reader of it until
// leave.
func (f *Feed) joinPast(org string, at Position) (p *past, number uint64, times []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := f.pasts[org]
	for _, p := range all {
		if number, times, ok := p.join(at); ok {
			return p, number, times
		}
	}
	if f.closed || len(all) >= maxPasts {
		return nil, 0, nil
	}
	p = &past{feed: f, org: org, turn: make(chan struct{}, 1), complete: at.Complete, readers: 1}
	p.window.init(f, slices.Clone(at.Times))
	f.pasts[org] = append(all, p)
	return p, 0, slices.Clone(at.Times)
}

// dropPasts removes the pasts that have had no reader since before. Readers join under f.mu, so
// none can join in between.
func (f *Feed) dropPasts(before time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for org, all := range f.pasts {
		all = slices.DeleteFunc(all, func(p *past) bool { return p.closeIdle(before) })
		if f.pasts[org] = all; len(all) == 0 {
			delete(f.pasts, org)
		}
	}
}

// closeIdle closes the past if it has had no reader since before, and reports whether it has.
func (p *past) closeIdle(before time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	idle := p.readers == 0 && p.idle.Before(before)
	if idle {
		p.closeLocked()
	}
	return idle
}

// join finds a position in the past. ok is false if the past does not have everything after it, or
// nothing else.
func (p *past) join(at Position) (number uint64, times []int64, ok bool) {
	if number, times, ok = p.find(at); !ok {
		return 0, nil, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until != nil && at.includes(p.until) || p.end != nil && at.includes(p.last) {
		return 0, nil, false
	}
	p.readers++
	return number, times, true
}

// leave ends the counting of a reader.
func (p *past) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers--; p.readers == 0 {
		p.idle = time.Now()
	}
}

// from returns the entries from a number on, or the end if there are none. ok is false if the
// past no longer has the first.
func (p *past) from(number uint64) (entries []entry, end *pastEnd, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entries, ok = p.fromLocked(number)
	if ok && len(entries) == 0 {
		end = p.end
	}
	return entries, end, ok
}

// read reads events up to the end of the ring until the past has, or has had, an entry with a
// number, or has ended.
func (p *past) read(ctx context.Context, r *ring, number uint64) error {
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
	return p.feed.withMergeSlot(ctx, func() error {
		defer p.merge.rest()
		for range max(1, min(pastChunk, p.limit/2)) {
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
func (p *past) begin(ctx context.Context, r *ring) error {
	m, err := p.feed.newMerge(ctx, r, &domain.EventFilter{}, Position{Times: p.last})
	if err != nil {
		return err
	}
	p.merge = m
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = m.until
	return nil
}

// push appends the next event of the merge, which is the first of a log.
func (p *past) push(log *mergedLog) error {
	event, isGap, err := log.event()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
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
	p.appendLocked(e)
	return nil
}

// finish ends the past at the end of the merge.
func (p *past) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end = &pastEnd{p.until, p.merge.complete}
	p.merge, p.arena = nil, nil
}
