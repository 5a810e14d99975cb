package hublog

import (
	"context"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// At returns the cursor after which a page begins with the first event stored at t or later: a
// position at the log's end when no such event is stored yet, and "", which stands for the oldest
// event, when t is older than the retention. Errors: not_found for a hub without an organization,
// and those of the broker.
func (l *Logs) At(ctx context.Context, hub domain.HubID, t time.Time) (string, error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return "", err
	}
	// A cursor close to the retention would expire on its way to the client.
	if l.cfg.Now().Sub(t) > l.cfg.Retention-l.cfg.Retention/100 {
		return "", nil
	}
	found, err := l.shard(hub).get(ctx, hub, jsapi.BatchRequest{Since: t, Messages: 1})
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return l.EndCursor(ctx, hub)
	}
	// If the first message since t is from before the epoch, the epoch's first event follows.
	return cursorAt(epoch, max(found[0].seq-1, epoch.After), t.UnixMilli()).String(), nil
}
