package hublog

import (
	"context"
	"encoding/json"
	"time"

	"hubcloud/domain"
)

// At gives a cursor from which a page begins with the first event that was stored at t or later: a
// position of the log's end when there is none yet, and "", the oldest event, when t is beyond the
// retention. Errors: not_found for a hub that nobody has, and those of the broker.
func (l *Logs) At(ctx context.Context, hub domain.HubID, t time.Time) (string, error) {
	epoch, err := l.epoch(hub)
	if err != nil {
		return "", err
	}
	// A cursor lives no longer than the retention: one that were that old would expire on its way
	// to the reader.
	if l.cfg.Now().Sub(t) > l.cfg.Retention-l.cfg.Retention/100 {
		return "", nil
	}
	request, err := json.Marshal(struct {
		From  time.Time `json:"start_time"`
		Batch int       `json:"batch"`
	}{t.UTC(), 1})
	if err != nil {
		return "", err
	}
	found, err := l.shard(hub).get(ctx, hub, request, 1)
	if err != nil {
		return "", err
	}
	if len(found) == 0 || found[0].seq <= epoch.After {
		return l.Position(ctx, hub)
	}
	return cursorAt(epoch, found[0].seq-1, t.UnixMilli()).String(), nil
}
