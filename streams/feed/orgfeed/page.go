package orgfeed

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// Part returns a part of a page of an organization's feed: the events after a position that the
// filter chooses, at most limit and about so many bytes of envelopes, but at least one if any
// follows. An empty position stands for the oldest events. A page reflects everything stored before
// the call. Parts read one after the other, each from the Next of the former while HasMore is set,
// make a page. HasMore can be set on a part with few events or none, when many were filtered out: a
// part looks at some 5,000.
//
// When no event follows, Part waits for one for the given time. It returns an empty page after that
// time, and when ctx ends meanwhile. Its errors are Follow's.
func (f *Feed) Part(
	ctx context.Context, org string, filter domain.EventFilter, after string, limit, bytes int,
	wait time.Duration,
) (domain.EventPage, error) {
	begun := time.Now()
	key := keptMergeKey{org, filter.Key(), after}
	r := f.merges.take(key)
	if r == nil {
		var err error
		if r, err = f.newReader(ctx, org, filter, after); err != nil {
			return domain.EventPage{}, err
		}
	}
	p := partRead{reader: r, limit: max(limit, 1), bytes: max(bytes, 1)}
	page, err := p.read(ctx, wait-time.Since(begun))
	if err == nil {
		page.Lag = r.Lag(ctx)
		if next, err := ParsePosition(page.Next, f.groups); err == nil {
			page.Lag.At = next.completeAt() // r may have read further
		}
	}
	// What a kept reader has read may be out of a limited reach by the next page.
	if err == nil && page.HasMore && r.merge != nil && filter.Within == nil {
		key.after = page.Next
		f.merges.put(key, r)
		return page, nil
	}
	r.Close()
	return page, err
}

// partRead is a part of a page under construction.
type partRead struct {
	reader       *Reader
	limit, bytes int
	events       []domain.EncodedEvent
	// next is the position after events.
	next string
	// more reports that events follow.
	more bool
	// scanned is how many events were looked at.
	scanned int
}

func (p *partRead) read(ctx context.Context, wait time.Duration) (domain.EventPage, error) {
	reading, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	if err := p.fill(reading); err != nil {
		return domain.EventPage{}, err
	}
	if !p.more {
		if _, err := p.reader.feed.sync(reading); err != nil {
			return domain.EventPage{}, err
		}
		if err := p.fill(reading); err != nil {
			return domain.EventPage{}, err
		}
	}
	if len(p.events) == 0 && !p.more && wait > 0 {
		if err := p.await(ctx, wait); err != nil {
			return domain.EventPage{}, err
		}
	}
	if !p.more {
		p.next = p.reader.Cursor()
	}
	return domain.EventPage{Events: p.events, Next: p.next, HasMore: p.more, Scanned: p.scanned}, nil
}

// fill reads events until the part is full or none is left. It sets more if one follows.
func (p *partRead) fill(ctx context.Context) error {
	r := p.reader
	for !p.more {
		wanted := p.limit - len(p.events)
		before := r.scanned
		events, err := r.next(ctx, wanted+1, p.bytes, false)
		if err != nil {
			return err
		}
		p.scanned += r.scanned - before
		if len(events) == 0 {
			p.next, p.more = r.Cursor(), r.left()
			return nil
		}
		fit := 0
		for fit < len(events) && fit < wanted &&
			(len(events[fit].Envelope) <= p.bytes || len(p.events)+fit == 0) {
			p.bytes -= len(events[fit].Envelope)
			fit++
		}
		p.events = append(p.events, events[:fit]...)
		if fit > 0 {
			p.next = events[fit-1].Cursor
		}
		if fit < len(events) {
			p.more = true
			r.hold(events[fit:])
		} else if p.scanned >= maxScan {
			p.next, p.more = r.Cursor(), r.left()
			return nil
		}
	}
	return nil
}

// await waits for the first event.
func (p *partRead) await(ctx context.Context, wait time.Duration) error {
	elapsed := time.NewTimer(wait)
	defer elapsed.Stop()
	for {
		select {
		case <-p.reader.Ready():
		case <-elapsed.C:
			return nil
		case <-ctx.Done():
			return nil
		}
		if ctx.Err() != nil {
			return nil
		}
		reading, cancel := context.WithTimeout(ctx, jsapi.Patience)
		err := p.fill(reading)
		cancel()
		if err != nil && ctx.Err() != nil {
			return nil
		}
		if err != nil || len(p.events) > 0 || p.more {
			return err
		}
	}
}

// left reports whether stored events are left that Next has not looked at.
func (r *Reader) left() bool { return r.merge != nil || r.more }

// hold makes Next return events again. The caller must use the Cursor of the event before them.
func (r *Reader) hold(events []domain.EncodedEvent) {
	r.held = append(append([]domain.EncodedEvent{}, events...), r.held...)
}
