package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/views"
)

const (
	// viewPatience is how long a reader waits for a hub's stream before it reads from the journal.
	viewPatience = time.Second
	// silentFor is how long a stream that did not answer within viewPatience is not asked again.
	silentFor = 5 * time.Second
	// maxSilent is how many streams are remembered before the ones that may be asked again are
	// forgotten.
	maxSilent = 1024
)

// errSilent reports that a hub's stream did not answer a moment ago.
var errSilent = fmt.Errorf("%w: the stream did not answer a moment ago", jsapi.ErrNoLeader)

// unresponsive holds the streams that timed out, and until when they are skipped. Otherwise each
// read of a log whose server is stopped or cut off would wait for it again.
type unresponsive struct {
	mu    sync.Mutex
	until map[domain.HubID]time.Time
}

func (u *unresponsive) has(hub domain.HubID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return time.Now().Before(u.until[hub])
}

func (u *unresponsive) add(hub domain.HubID) {
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.until == nil {
		u.until = map[domain.HubID]time.Time{}
	}
	if len(u.until) >= maxSilent {
		for other, until := range u.until {
			if until.Before(now) {
				delete(u.until, other)
			}
		}
	}
	u.until[hub] = now.Add(silentFor)
}

// askStream calls try, which asks a hub's stream for what the journal can have too. The context of
// try ends after viewPatience. A stream that has not answered then is not asked for a while: the
// error is errSilent meanwhile.
func (l *Logs) askStream(
	ctx context.Context, hub domain.HubID, try func(ctx context.Context) error,
) error {
	if l.unresponsive.has(hub) {
		return errSilent
	}
	trying, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	err := try(trying)
	if err != nil && trying.Err() != nil && ctx.Err() == nil {
		l.unresponsive.add(hub)
		l.metrics.silent.Inc()
	}
	return err
}

// streamEnd returns the last sequence of the hub's stream, and whether the stream is intact, as far
// as its description tells. What the log has after it is in the journal, which knows everything
// that was stored before the call.
func (l *Logs) streamEnd(
	ctx context.Context, hub domain.HubID,
) (end uint64, intact bool, err error) {
	if err := l.cfg.Journal.Sync(ctx, hub); err != nil {
		return 0, false, err
	}
	var b bounds
	err = l.askStream(ctx, hub, func(ctx context.Context) error {
		b, err = l.streamBounds(ctx, hub)
		return err
	})
	return b.last, err == nil && l.isIntact(hub, b), ctx.Err()
}

// isIntact reports whether the bounds of a stream belong to an intact one. A stream that was
// damaged while the service was stopped, or on a server that crashed, is written again soon.
func (l *Logs) isIntact(hub domain.HubID, b bounds) bool {
	tip, ok := l.cfg.Journal.Tip(hub)
	return ok && b.stream != nil &&
		views.IsIntact(b.stream, tip.Time, l.cfg.Now(), l.cfg.Retention)
}

// unstreamed returns the records of a log after the last one that its stream has.
func (l *Logs) unstreamed(
	ctx context.Context, hub domain.HubID, end uint64,
) (records []stored, err error) {
	tip, _ := l.cfg.Journal.Tip(hub)
	for from := end + 1; from <= tip.Seq; {
		found, err := l.journaled(ctx, hub, from, tip.Seq)
		if errors.Is(err, journal.ErrGone) {
			return records, nil
		}
		if err != nil {
			return nil, err
		}
		records = append(records, found...)
		from = found[len(found)-1].seq + 1
	}
	return records, nil
}
