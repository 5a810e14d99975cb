package orgfeed

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

const (
	// firstWindow is how far Last looks back first, from the newest record. Each further window is
	// windowGrowth times as long as the one before.
	firstWindow  = time.Second
	windowGrowth = 16
	// enoughScanned is how many events of a window are enough: the next window may have
	// windowGrowth times as many.
	enoughScanned = 2000
)

// Since returns the position before the events that were stored at a time or later, as far as they
// are kept.
func (f *Feed) Since(t time.Time) string { return f.since(t).String() }

func (f *Feed) since(t time.Time) Position {
	p := f.oldest()
	for g, oldest := range p.Times {
		p.Times[g] = max(oldest, t.UnixNano()-1)
	}
	p.Complete = max(p.Complete, t.UnixMilli())
	return p
}

// Last returns the position before the newest n events that the filter chooses, or before as many
// of them as are among some thousands of the newest events. It fails with service_unavailable.
func (f *Feed) Last(
	ctx context.Context, org string, filter domain.EventFilter, n int,
) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	if _, err := f.sync(ctx); err != nil {
		return "", err
	}
	if err := f.cfg.Hubs.Refresh(ctx); err != nil {
		return "", unavailable(err)
	}
	newest := f.newest(org, &filter)
	for window := firstWindow; ; window *= windowGrowth {
		before, scanned, err := f.beforeLast(ctx, org, filter, newest.Add(-window), n)
		if err != nil {
			return "", err
		}
		all := f.cfg.Now().Sub(newest)+window >= f.cfg.Retention
		if before.found == n || scanned >= enoughScanned || all {
			return before.start, nil
		}
	}
}

// newest returns when the newest record of the hubs that a filter chooses was stored.
func (f *Feed) newest(org string, filter *domain.EventFilter) time.Time {
	var newest int64
	for _, hub := range f.cfg.Hubs.HubsOf(org) {
		if access, ok := f.cfg.Hubs.Hub(hub); ok && filter.HasHub(hub, access.SiteID) {
			newest = max(newest, f.cfg.Logs.LastStored(hub))
		}
	}
	return time.Unix(0, newest)
}

// beforeLast finds the newest n events among those stored at a time or later. scanned is how many
// events it looked at.
func (f *Feed) beforeLast(
	ctx context.Context, org string, filter domain.EventFilter, since time.Time, n int,
) (before lastPositions, scanned int, err error) {
	r, err := f.newReader(ctx, org, filter, "")
	if err != nil {
		return before, 0, err
	}
	defer r.Close()
	r.pos = f.since(since)
	before = lastPositions{ring: make([]string, n)}
	before.start = r.pos.String()
	for {
		b := batch{reader: r, limit: maxScan, bytes: nextBytes}
		err := b.read(ctx)
		scanned += b.scanned
		for i := range b.events {
			before.add(b.events[i].Cursor)
		}
		if err != nil || len(b.events) == 0 && !r.left() {
			return before, scanned, err
		}
	}
}

// lastPositions has the positions before and between the newest events of a scan.
type lastPositions struct {
	// start is the position before all events that ring has, and ring has the positions after each.
	start string
	ring  []string
	// next is the place in ring of the next event, and found how many events ring has.
	next, found int
}

// add adds the position after an event.
func (l *lastPositions) add(after string) {
	if l.found == len(l.ring) {
		l.start = l.ring[l.next]
	} else {
		l.found++
	}
	l.ring[l.next] = after
	l.next = (l.next + 1) % len(l.ring)
}
