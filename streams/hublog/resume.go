package hublog

import (
	"context"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
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
	// The event may have been stored just now, and the feed not have brought it yet.
	if _, err := t.check(ctx); err != nil {
		return c, err
	}
	if t.reaches(c.seq) {
		return c, nil
	}
	// Another process has seen the log reach further. A stale answer would make the client resync
	// without need, so the leader must confirm that the log ends before the cursor.
	b, err := l.bounds(ctx, t.hub, c.seq)
	if err != nil {
		return c, err
	}
	if b.last < c.seq {
		return c, errExpired()
	}
	if _, err := t.check(ctx); err != nil {
		return c, err
	}
	if !t.reaches(c.seq) {
		return c, fmt.Errorf(
			"hub log of %s: %w: it reached sequence %d a moment ago", t.hub, jsapi.ErrUnconfirmed,
			c.seq,
		)
	}
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
