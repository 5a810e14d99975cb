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
	// maxSilent is the number of remembered streams from which on those are forgotten that may be
	// asked again.
	maxSilent = 1024
)

// errSilent reports that a hub's stream did not answer a moment ago.
var errSilent = fmt.Errorf("%w: the stream did not answer a moment ago", jsapi.ErrNoLeader)

// silences holds the streams that timed out, and until when they are skipped. Otherwise each read
// of a log whose server is stopped or cut off would wait for it again.
type silences struct {
	mu    sync.Mutex
	until map[domain.HubID]time.Time
}

func (s *silences) has(hub domain.HubID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[hub])
}

func (s *silences) add(hub domain.HubID) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[domain.HubID]time.Time{}
	}
	if len(s.until) >= maxSilent {
		for other, until := range s.until {
			if until.Before(now) {
				delete(s.until, other)
			}
		}
	}
	s.until[hub] = now.Add(silentFor)
}

// askStream calls try, which asks a hub's stream for what the journal can have too. The context of
// try ends after viewPatience. A stream that has not answered then is not asked for a while: the
// error is errSilent meanwhile.
func (l *Logs) askStream(
	ctx context.Context, hub domain.HubID, try func(ctx context.Context) error,
) error {
	if l.silent.has(hub) {
		return errSilent
	}
	trying, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	err := try(trying)
	if err != nil && trying.Err() != nil && ctx.Err() == nil {
		l.silent.add(hub)
		l.metrics.silent.Inc()
	}
	return err
}

// awaitView waits for a moment until the hub's stream has all of the hub's log, and reports whether
// it has. Everything that was stored before the call is known to the journal's index afterwards.
func (l *Logs) awaitView(ctx context.Context, hub domain.HubID) (complete bool, err error) {
	if l.cfg.Journal == nil {
		return true, nil
	}
	if err := l.cfg.Journal.Sync(ctx, hub); err != nil {
		return false, err
	}
	tip, _ := l.cfg.Journal.Tip(hub)
	return l.reaches(ctx, hub, tip.Seq), ctx.Err()
}

// reaches waits for a moment until the hub's stream is known to be intact and to have its log up to
// a sequence, and reports whether it is.
func (l *Logs) reaches(ctx context.Context, hub domain.HubID, seq uint64) bool {
	if !l.isJournaled(hub) {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, viewPatience)
	defer cancel()
	return l.cfg.Journal.AwaitView(ctx, hub, seq) == nil
}

// isJournaled reports whether the journal is known to have had a record of the hub. Otherwise only
// the hub's stream has what there is of its log.
func (l *Logs) isJournaled(hub domain.HubID) bool {
	if l.cfg.Journal == nil {
		return false
	}
	_, ok := l.cfg.Journal.Tip(hub)
	return ok
}
