package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
)

// At returns the cursor after which a page begins with the first event stored at t or later: a
// position at the log's end when no such event is stored yet, and "", which stands for the oldest
// event, when t is older than the retention. Errors: not_found for a hub without an organization,
// and service_unavailable.
func (l *Logs) At(ctx context.Context, hub domain.HubID, t time.Time) (string, error) {
	if t.Before(l.oldestStart()) {
		_, err := l.epoch(hub)
		return "", err
	}
	return l.after(ctx, hub, t)
}

// Since returns the cursor of At, and for a time from before the retention a cursor close to the
// oldest event.
func (l *Logs) Since(ctx context.Context, hub domain.HubID, t time.Time) (string, error) {
	if oldest := l.oldestStart(); t.Before(oldest) {
		t = oldest
	}
	return l.after(ctx, hub, t)
}

// oldestStart returns the earliest time from which a read begins. A cursor closer to the retention
// would expire on its way to the client.
func (l *Logs) oldestStart() time.Time {
	return l.cfg.Now().Add(l.cfg.Retention/100 - l.cfg.Retention)
}

// after returns the cursor after which the first event follows that was stored at t or later.
func (l *Logs) after(ctx context.Context, hub domain.HubID, t time.Time) (string, error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return "", err
	}
	now := l.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	b, err := l.bounds(ctx, hub)
	if err != nil {
		return "", unavailable(err)
	}
	first, err := l.search(ctx, hub, b, t)
	if err != nil {
		return "", unavailable(fmt.Errorf("read the log of %s from %v: %w", hub, t, err))
	}
	if first > b.last {
		return endCursor(epoch, b.last, now), nil
	}
	// If the first record since t is from before the epoch, the epoch's first event follows.
	return cursorAt(epoch, max(first-1, epoch.After), t.UnixMilli()).String(), nil
}

// search returns the sequence of the first record within bounds that was stored at t or later, and
// the one behind the log's end if there is none. Streams that were rebuilt have other times than
// their records, so search compares the records.
func (l *Logs) search(
	ctx context.Context, hub domain.HubID, b bounds, t time.Time,
) (uint64, error) {
	if b.isEmpty() || b.lastStored.Before(t) {
		return b.last + 1, nil
	}
	low, high := b.first, b.last // the answer is one of these, or between them
	for low < high {
		mid := low + (high-low)/2
		found, err := l.records(ctx, hub, mid, mid)
		var gone *goneError
		if errors.As(err, &gone) {
			low = min(max(gone.first, mid+1), high)
			continue
		}
		if err != nil {
			return 0, err
		}
		if found[0].at.Before(t) {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low, nil
}

// EndCursor returns a cursor of the log's end: it is after everything stored before the call, and
// before everything stored later. Errors: not_found for a hub without an organization, and
// service_unavailable.
func (l *Logs) EndCursor(ctx context.Context, hub domain.HubID) (string, error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return "", err
	}
	now := l.cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	last, _, err := l.end(ctx, hub)
	if err != nil {
		return "", unavailable(err)
	}
	return endCursor(epoch, last, now), nil
}

// endCursor returns a cursor of the log's end, which was at the sequence last at the time asked or
// later.
func endCursor(epoch domain.Epoch, last uint64, asked time.Time) string {
	return cursorAt(epoch, max(last, epoch.After), asked.UnixMilli()).String()
}
