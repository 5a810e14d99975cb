package hublog

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

// At returns the cursor after which a page begins with the first event stored at t or later: a
// position at the log's end when no such event is stored yet, and "", which stands for the oldest
// event, when t is older than the retention. Errors: not_found for a hub without an organization,
// and service_unavailable.
func (l *Logs) At(ctx context.Context, hub domain.HubID, t time.Time) (string, error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return "", err
	}
	now := l.cfg.Now()
	// A cursor close to the retention would expire on its way to the client.
	if now.Sub(t) > l.cfg.Retention-l.cfg.Retention/100 {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for pause := loadPause; ; pause = min(2*pause, maxLoadPause) {
		found, err := l.shard(hub).get(ctx, hub, jsapi.BatchRequest{Since: t, Messages: 1})
		if err != nil {
			return "", unavailable(err)
		}
		if len(found) > 0 {
			// If the first message since t is from before the epoch, the epoch's first event
			// follows.
			return cursorAt(epoch, max(found[0].seq-1, epoch.After), t.UnixMilli()).String(), nil
		}
		// Any copy of the stream may have answered, also one that is behind: only the leader knows
		// whether the log has no message since t.
		b, err := l.bounds(ctx, hub, 0)
		if err != nil {
			return "", unavailable(err)
		}
		if b.isEmpty() || b.lastStored.Before(t) {
			return l.endCursor(ctx, hub, epoch, b.last, now)
		}
		if !streams.Sleep(ctx, pause) {
			return "", unavailable(fmt.Errorf("read the log of %s from %v: %w", hub, t, errBehind))
		}
	}
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
	// A stale answer leads to an earlier position, after which the reader gets some events again:
	// delivery is at least once.
	b, err := l.bounds(ctx, hub, 0)
	if err != nil {
		return "", unavailable(err)
	}
	return l.endCursor(ctx, hub, epoch, b.last, now)
}

// endCursor returns a cursor of the log's end, which a leader has answered is at the sequence last.
// The leader was asked at the time asked or later.
func (l *Logs) endCursor(
	ctx context.Context, hub domain.HubID, epoch domain.Epoch, last uint64, asked time.Time,
) (string, error) {
	if last > 0 {
		// A crash must not take back messages before the cursor.
		if err := l.awaitDurable(ctx, hub); err != nil {
			return "", unavailable(err)
		}
	}
	return cursorAt(epoch, max(last, epoch.After), asked.UnixMilli()).String(), nil
}
