package feed

import (
	"context"
	"time"

	"hubcloud/domain"
)

// refresh updates this process's view of the directory when the cursor does not belong to the epoch
// that it knows: another process, whose view is newer, may have returned the cursor.
func (l *Logs) refresh(ctx context.Context, hub domain.HubID, after string) error {
	if after == "" || l.cfg.Refresh == nil {
		return nil
	}
	c, err := parseCursor(after)
	if err != nil {
		return err
	}
	epoch, err := l.epoch(hub)
	if err != nil || c.epoch == epoch.At(c.seq) && c.seq >= epoch.After ||
		l.age(c) > l.cfg.Retention {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	return l.cfg.Refresh(ctx)
}

// resume decodes a cursor to continue from. It returns cursor_expired for a cursor that is too old,
// of another epoch, or beyond the log's end. Whether the next event has expired shows when reading.
func (l *Logs) resume(ctx context.Context, t *tail, after string) (cursor, error) {
	c, err := parseCursor(after)
	if err != nil {
		return c, err
	}
	if c.epoch != t.epoch.At(c.seq) || c.seq < t.epoch.After || l.age(c) > l.cfg.Retention {
		return c, errExpired()
	}
	if t.reaches(c.seq) {
		return c, nil
	}
	// The event may have been stored just now by another process, or this process's answers are
	// stale: the client must not resync without need.
	last, err := l.endAtLeast(ctx, t.hub, c.seq)
	if err != nil {
		return c, err
	}
	if last < c.seq {
		return c, errExpired()
	}
	t.skipTo(last)
	return c, nil
}

func (l *Logs) age(c cursor) time.Duration { return l.cfg.Now().Sub(c.stored()) }

// renew returns the cursor text or, if text is empty or older than half the retention, the cursor
// position, which stands for the same place.
func (l *Logs) renew(text string, position cursor) string {
	if text != "" {
		c, err := parseCursor(text)
		if err == nil && (l.age(c) <= l.cfg.Retention/2 || c.ms >= position.ms) {
			return text
		}
	}
	return position.String()
}
