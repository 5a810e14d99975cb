package feed

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
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
