package orgfeed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"hubcloud/streams/jsapi"
)

const (
	// maxOverlap is how long before a list its position is at least. So the events repeat what the
	// list has from elsewhere and a moment late, such as the connections of hubs.
	maxOverlap = 5 * time.Second
	// reachPause is the time between two looks at how far the list's source is.
	reachPause = 100 * time.Millisecond
	// maxReachWait is how long ListPosition waits for a list's source to be up with the journals.
	maxReachWait = 3 * time.Second
)

// ListPosition returns the position from which a reader continues after a list that is made from
// the hub logs, so that list and events together miss no change. It must be called before the list
// is read. reached returns for each group the time of the last record that the list has, in
// nanoseconds since 1970. Errors: reached's, and service_unavailable.
//
// The events after the position repeat the last seconds of what the list has.
func (f *Feed) ListPosition(
	ctx context.Context, org string, reached func(ctx context.Context) ([]int64, error),
) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, jsapi.Patience)
	defer cancel()
	at, err := f.sync(ctx)
	if err != nil {
		return "", err
	}
	ends := f.ends(org)
	for begun := time.Now(); ; {
		times, err := reached(ctx)
		if err != nil {
			return "", err
		}
		if len(times) != f.groups {
			return "", fmt.Errorf("list of an organization: got the times of %d groups, want %d",
				len(times), f.groups)
		}
		p := positionBefore(at, times, ends, min(maxOverlap, f.cfg.Retention/8))
		recent := time.UnixMilli(at).Sub(p.completeAt()) < f.cfg.Retention/4
		if recent || time.Since(begun) > maxReachWait {
			return p.String(), nil
		}
		// A group that was idle for long has a new record that the list lacks. A position at its
		// last record before would expire soon.
		select {
		case <-ctx.Done():
			return "", unavailable(ctx.Err())
		case <-time.After(reachPause):
		}
	}
}

// positionBefore returns the position up to times, and at least overlap before at, which is in
// milliseconds since 1970. ends are the times of the last records up to at.
func positionBefore(at int64, times, ends []int64, overlap time.Duration) Position {
	p := Position{Complete: at, Times: slices.Clone(times)}
	latest := at*int64(time.Millisecond) - int64(overlap)
	for g := range p.Times {
		p.Times[g] = max(0, min(p.Times[g], latest))
		if ends[g] > p.Times[g] {
			p.Complete = min(p.Complete, p.Times[g]/int64(time.Millisecond))
		}
	}
	return p
}
