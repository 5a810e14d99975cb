package orgfeed

import (
	"context"
	"slices"
	"time"

	"hubcloud/domain"
)

// batch is what one call of Next returns.
type batch struct {
	reader *Reader
	// limit and bytes are what still fits, scanned how many events were looked at.
	limit, bytes, scanned int
	frames                bool
	events                []domain.EncodedEvent
	arena                 []byte
}

// full reports whether the batch must end before an event with an envelope of so many bytes.
func (b *batch) full(size int) bool {
	return b.limit <= 0 || b.scanned >= maxScan || len(b.events) > 0 && size > b.bytes
}

func (b *batch) add(e domain.EncodedEvent) {
	b.events = append(b.events, e)
	b.limit--
	b.bytes -= len(e.Envelope)
	r := b.reader
	r.text, r.complete, r.moved = e.Cursor, r.pos.Complete, false
}

// read adds events until the batch is full or none is left.
func (b *batch) read(ctx context.Context) error {
	r := b.reader
	for done := true; done; {
		if r.merge == nil && r.catchUp == nil {
			behind, err := b.readRing(ctx)
			if err != nil || !behind {
				return err
			}
			if r.feed.expired(r.pos) {
				if r.text != "" {
					return errExpired()
				}
				// The reader began with the oldest events and has told nobody a position yet.
				oldest := r.feed.oldest()
				r.reach(oldest.Times, oldest.Complete)
			}
			if err := b.fallBehind(ctx); err != nil {
				return err
			}
		}
		var err error
		if r.catchUp != nil {
			done, err = b.readCatchUp(ctx)
		} else {
			done, err = b.readMerge(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fallBehind makes the reader go on behind the ring: with a catch-up or, if it reads only some hubs
// or a page, with a merge of its own.
func (b *batch) fallBehind(ctx context.Context) (err error) {
	r := b.reader
	if b.frames && r.filter.HasAllHubs() && !r.fresh {
		if r.catchUp, r.number, r.times = r.feed.joinCatchUp(r.ring.org, r.pos); r.catchUp != nil {
			return nil
		}
	}
	return r.feed.withMergeSlot(ctx, r.ring.org, func() (err error) {
		r.merge, err = r.feed.newMerge(ctx, r.ring, &r.filter, r.pos)
		return err
	})
}

// readCatchUp adds events of the catch-up. done reports that the reader has left it.
func (b *batch) readCatchUp(ctx context.Context) (done bool, err error) {
	r := b.reader
	for {
		entries, end, ok := r.catchUp.from(r.number)
		switch {
		case !ok:
			r.leaveCatchUp()
			return true, nil
		case len(entries) > 0:
			if err := b.addEntries(ctx, entries); err != nil || r.more {
				return false, err
			}
		case end == nil && (len(b.events) > 0 || b.full(0)):
			return false, nil // what is there need not wait for what follows
		case end == nil:
			if err := r.catchUp.read(ctx, r.ring, r.number); err != nil {
				return false, err
			}
		default:
			r.leaveCatchUp()
			r.reach(end.until, end.complete)
			return true, nil
		}
	}
}

// readRing adds events of the ring. behind reports that the ring does not have the next one.
func (b *batch) readRing(ctx context.Context) (behind bool, err error) {
	r := b.reader
	if !r.joined {
		var ok bool
		if r.number, r.times, ok = r.ring.find(r.pos); !ok {
			return true, nil
		}
		r.joined = true
	}
	entries, confirmed, ok, err := r.ring.from(r.number)
	if err != nil {
		return false, err
	}
	if !ok {
		r.joined = false
		return true, nil
	}
	if err := b.addEntries(ctx, entries); err != nil || r.more {
		return false, err
	}
	r.pos.Complete, r.fresh = max(r.pos.Complete, confirmed), false
	return false, nil
}

// addEntries adds the next entries of the ring or the catch-up. It sets r.more if it leaves some.
func (b *batch) addEntries(ctx context.Context, entries []entry) error {
	r := b.reader
	r.more = false
	if b.events == nil {
		b.events = make([]domain.EncodedEvent, 0, max(min(b.limit, len(entries)), 0))
	}
	for i := range entries {
		e := &entries[i]
		if b.full(len(e.event.Envelope)) {
			r.more = true
			return nil
		}
		b.scanned++
		if e.time > r.pos.Times[e.group] {
			if err := b.addEntry(ctx, e); err != nil {
				return err
			}
		}
		r.times[e.group] = e.time
		r.number++
	}
	return nil
}

// addEntry adds the next entry, if it is chosen, and moves the position. After an error the
// position is where it was, so that the next call tries the entry again.
func (b *batch) addEntry(ctx context.Context, e *entry) error {
	r := b.reader
	access, state, err := r.feed.access(ctx, r.ring.org, e)
	if err != nil {
		return err
	}
	chosen := state != entryForeign && r.filter.HasHub(e.hub, access.SiteID)
	var marker *domain.EncodedEvent
	if chosen && state == entryFormer {
		if marker, err = b.formerGap(ctx, e, access.Epoch); err != nil {
			return err
		}
	}
	r.pos.Times[e.group], r.pos.Complete = e.time, max(r.pos.Complete, e.complete)
	r.moved = true
	switch {
	case marker != nil:
		b.add(withID(nil, r.pos.String(), marker))
		return nil
	case !chosen || state == entryFormer,
		!e.gap && !r.filter.HasAllTypes() && !r.filter.HasType(eventType(&e.event)):
		return nil
	}
	r.times[e.group] = e.time
	if slices.Equal(r.times, r.pos.Times) {
		b.add(e.event)
		return nil
	}
	id := r.pos.String()
	b.add(withID(nil, id, &e.event))
	return nil
}

// readMerge adds events of the merge. done reports that the merge has ended.
func (b *batch) readMerge(ctx context.Context) (done bool, err error) {
	err = b.reader.feed.withMergeSlot(ctx, b.reader.ring.org, func() error {
		done, err = b.addMergedEvents(ctx)
		return err
	})
	return done, err
}

func (b *batch) addMergedEvents(ctx context.Context) (done bool, err error) {
	r := b.reader
	m := r.merge
	defer m.rest()
	for {
		log, err := m.peek(ctx)
		if err != nil {
			return false, err
		}
		if log == nil {
			r.reach(m.until, m.complete)
			r.merge, r.fresh = nil, false
			return true, nil
		}
		e, isGap, err := log.event()
		if err != nil {
			return false, err
		}
		if b.full(len(e.Envelope)) {
			return false, nil
		}
		b.scanned++
		r.pos.Times[log.group] = log.next
		// Everything after the event is later, apart from what is received late.
		r.pos.Complete = max(r.pos.Complete, min(m.complete, log.next/int64(time.Millisecond)))
		switch {
		case isGap && r.fresh, !r.reaches(log.backlog.Hub()):
			r.moved = true
		case isGap, r.filter.HasAllTypes(), r.filter.HasType(eventType(e)):
			b.addMerged(e)
		default:
			r.moved = true
		}
		m.advance()
	}
}

// reaches reports whether a hub that the merge began with is still within the reader's sites.
func (r *Reader) reaches(hub domain.HubID) bool {
	if r.filter.Within == nil {
		return true
	}
	access, ok := r.feed.cfg.Hubs.Hub(hub)
	return ok && slices.Contains(r.filter.Within, access.SiteID)
}

// addMerged adds an event of a hub's log.
func (b *batch) addMerged(e *domain.EncodedEvent) {
	id := b.reader.pos.String()
	if !b.frames {
		b.add(domain.EncodedEvent{Envelope: e.Envelope, Cursor: id, StoredNanos: e.StoredNanos})
		return
	}
	size := frameBytes(id, e)
	if cap(b.arena)-len(b.arena) < size {
		b.arena = make([]byte, 0, max(size, min(nextBytes/2, b.limit*size)))
	}
	event := withID(b.arena, id, e)
	b.arena = b.arena[:len(b.arena)+len(event.Frame)]
	b.add(event)
}

// formerGap returns feed.gap if an entry is the last one of a log before its reset, and nil
// otherwise. The other entries are left out: the gap stands for all of them, at the place where a
// merge has it. Where it is not known which entry is the last one, the gap stands at the first, and
// comes once.
func (b *batch) formerGap(
	ctx context.Context, e *entry, epoch domain.Epoch,
) (*domain.EncodedEvent, error) {
	r := b.reader
	if r.fresh || r.resets[e.hub] == epoch.ID {
		return nil, nil
	}
	last, err := r.feed.lastFormer(ctx, r.ring.org, e.hub, epoch.ID)
	if err != nil || e.time < last {
		return nil, err
	}
	marker, err := gapEvent(e.hub, epoch, gap{e.time, gapReset})
	if err != nil {
		return nil, err
	}
	if r.resets == nil {
		r.resets = map[domain.HubID]domain.EpochID{}
	}
	r.resets[e.hub] = epoch.ID
	return &marker, nil
}
