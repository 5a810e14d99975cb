package feed

import (
	"context"
	"errors"
	"sort"
	"time"

	"hubcloud/domain"
)

// Backlog is what a hub's log has after a time. It reads through the cache of history that all
// readers share, and needs neither a tail nor a goroutine. It must be used by one goroutine.
type Backlog struct {
	logs *Logs
	log  logEpoch
	// next is the sequence that is read next, and last the last one of the backlog. total is how
	// many events the log has had up to last.
	next, last, total uint64
	// after is the time, in nanoseconds since 1970: older events are left out.
	after int64
	// Former is when the last event of the organization was stored, in nanoseconds since 1970, that
	// is after the time and cannot be read any more, because it belongs to the log before a reset.
	// It is 0 if there is none.
	Former int64
	// restored is the sequence after which the log was restored from a backup; 0 if no event of the
	// backlog is after a restore.
	restored uint64
}

// ErrReleased ends a Backlog whose hub is no longer the organization's. It is a domain.Error with
// the code not_found.
var ErrReleased error = domain.ErrHubNotFound()

// LastStored returns when the last record of a hub's log was stored, as far as this process has
// received it, in nanoseconds since 1970; 0 if there never was one.
func (l *Logs) LastStored(hub domain.HubID) int64 {
	tip, ok := l.cfg.Journal.Tip(hub)
	if !ok {
		return 0
	}
	return tip.Time.UnixNano()
}

// Backlog returns the events of an organization's hub after a time, in nanoseconds since 1970, up
// to what this process has received. Errors: ErrReleased, and service_unavailable.
func (l *Logs) Backlog(
	ctx context.Context, org string, hub domain.HubID, after int64,
) (b Backlog, err error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return b, ErrReleased
	}
	tip, _ := l.cfg.Journal.Tip(hub)
	b = Backlog{
		logs: l, log: logEpoch{hub, epoch}, after: after, last: tip.Seq, total: tip.Events,
	}
	b.next = b.last + 1
	if b.last == 0 || tip.Time.UnixNano() <= after {
		return b, nil
	}
	first := uint64(1)
	if b.last > epoch.After {
		first, err = b.seek(ctx, epoch.After+1)
		if err != nil {
			return b, unavailable(err)
		}
		b.next = first
	}
	if epoch.After > 0 && first <= epoch.After+1 {
		if b.Former, err = b.lastFormer(ctx, org); err != nil {
			return b, unavailable(err)
		}
	}
	if n := len(epoch.Former); n > 0 && first <= epoch.Former[n-1].Through+1 {
		b.restored = epoch.Former[n-1].Through
	}
	return b, nil
}

// seek returns a sequence, from first on, before which no event is from after the backlog's time.
// It looks at blocks back from the log's end, and then bisects.
func (b *Backlog) seek(ctx context.Context, first uint64) (uint64, error) {
	low, high := first, b.last+1
	for back := uint64(blockSize); low < high; {
		at := low + (high-low)/2
		if back > 0 && high-low > back {
			at = high - back
			back *= 2
		}
		at = max(low, at/blockSize*blockSize)
		events, _, _, err := b.logs.history(
			ctx, b.log, at, min(blockEnd(at), b.last), space{events: blockSize, bytes: unbounded}, true,
		)
		var gone *goneError
		if errors.As(err, &gone) {
			low = min(max(gone.first, at+1), high)
			continue
		}
		if err != nil {
			return 0, err
		}
		older := sort.Search(len(events), func(i int) bool {
			return events[i].StoredNanos > b.after
		})
		if older == 0 {
			high = at // also for a block of records of commands alone: that begins too early at most
			continue
		}
		back = 0
		low = events[older-1].Seq + 1
		if older < len(events) {
			high = min(high, events[older].Seq)
		}
	}
	return low, nil
}

// LastFormer returns when the last event of an organization's hub was stored before the log was
// reset, in nanoseconds since 1970; 0 if there was none or it has expired. Errors: ErrReleased, and
// service_unavailable.
func (l *Logs) LastFormer(ctx context.Context, org string, hub domain.HubID) (int64, error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return 0, ErrReleased
	}
	b := Backlog{logs: l, log: logEpoch{hub, epoch}}
	at, err := b.lastFormer(ctx, org)
	return at, unavailable(err)
}

// lastFormer returns when the last event of a former epoch was stored, if it is the organization's
// and after the backlog's time; 0 otherwise.
func (b *Backlog) lastFormer(ctx context.Context, org string) (int64, error) {
	for to := b.log.epoch.After; to > 0; {
		from := to - min(to-1, blockSize-1)
		records, err := b.logs.allRecords(ctx, b.log.hub, from, to)
		var gone *goneError
		if errors.As(err, &gone) || errors.Is(err, ErrEpochEnded) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		for i := len(records) - 1; i >= 0; i-- {
			r := &records[i]
			if r.at.UnixNano() <= b.after || r.event && r.org != org {
				return 0, nil
			}
			if r.event {
				return r.at.UnixNano(), nil
			}
		}
		to = records[0].seq - 1
		if records[0].seq > from {
			return 0, nil
		}
	}
	return 0, nil
}

// Hub returns the hub of the backlog.
func (b *Backlog) Hub() domain.HubID { return b.log.hub }

// Epoch returns the epoch that the backlog reads.
func (b *Backlog) Epoch() domain.Epoch { return b.log.epoch }

// Next returns the next events, at most n and about so many bytes, but at least one; none at the
// end of the backlog. gap reports that events before them are missing: they have expired, or the
// log was restored from a backup. The slice is shared and must not be kept for long. Errors:
// ErrEpochEnded when a new epoch has begun, ErrReleased, and service_unavailable.
func (b *Backlog) Next(
	ctx context.Context, n, bytes int,
) (events []domain.EncodedEvent, gap bool, err error) {
	current, err := b.logs.epoch(b.log.hub)
	switch {
	case err != nil:
		return nil, false, ErrReleased
	case current.ID != b.log.epoch.ID:
		return nil, false, ErrEpochEnded
	}
	for b.next <= b.last {
		events, through, _, err := b.logs.history(
			ctx, b.log, b.next, b.last, space{events: n, bytes: bytes}, true,
		)
		var gone *goneError
		if errors.As(err, &gone) {
			gap = gap || gone.first > b.next
			b.next = max(gone.first, b.next+1)
			continue
		}
		if err != nil {
			return nil, gap, unavailable(err)
		}
		b.next = through + 1
		for len(events) > 0 && events[0].StoredNanos <= b.after {
			events = events[1:]
		}
		if len(events) == 0 {
			continue
		}
		if b.restored > 0 && events[len(events)-1].Seq > b.restored {
			if events[0].Seq <= b.restored { // the events before the restore first
				kept := sort.Search(len(events), func(i int) bool {
					return events[i].Seq > b.restored
				})
				b.next, events = events[kept].Seq, events[:kept]
			} else {
				gap, b.restored = true, 0
			}
		}
		return events, gap, nil
	}
	return nil, gap, nil
}

// Unread makes Next return the event with that sequence, and those after it, once more.
func (b *Backlog) Unread(seq uint64) { b.next = seq }

// AtEnd reports whether Next has returned everything.
func (b *Backlog) AtEnd() bool { return b.next > b.last }

// Marker returns an event of a reader's own, which is in no log, with the cursor of the place where
// an epoch begins.
func Marker(epoch domain.Epoch, at time.Time, payload []byte) (domain.EncodedEvent, error) {
	return encode(epoch.At(epoch.After), epoch.After, at, payload)
}
