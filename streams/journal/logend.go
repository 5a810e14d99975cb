package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/jsapi"
)

// loadEnd makes sure that the queue knows the end of the request's log, and returns the epoch of
// which records are rejected.
func (w *queue) loadEnd(ctx context.Context, req *request) (ended domain.EpochID, err error) {
	w.mu.Lock()
	end := w.ends[req.hub]
	if end != nil {
		ended = end.ended
	}
	w.mu.Unlock()
	expectsNone := req.expected == 0
	// An append that expects no event may follow events that have expired since: look again.
	if end != nil && !(expectsNone && !end.endsWith(0)) {
		return ended, nil
	}
	// Callers share a read, so it does not end with one of them.
	read := w.loads.DoChan(fmt.Sprint(req.hub, expectsNone), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jsapi.Patience)
		defer cancel()
		return w.readEnd(ctx, req.hub, expectsNone)
	})
	select {
	case result := <-read:
		if result.Err != nil {
			return ended, fmt.Errorf("hub log of %s: %w", req.hub, result.Err)
		}
		return result.Val.(domain.EpochID), nil
	case <-w.fenced:
		return ended, errStopped
	case <-ctx.Done():
		return ended, ctx.Err()
	}
}

// readEnd reads the end of a hub's log, and whether its last event has expired if that matters.
func (w *queue) readEnd(
	ctx context.Context, hub domain.HubID, expectsNone bool,
) (ended domain.EpochID, err error) {
	w.mu.Lock()
	known := w.ends[hub]
	var was logEnd
	if known != nil {
		was = *known
	}
	w.mu.Unlock()
	tip, _ := w.group.index.Tip(hub)
	end := was
	if known == nil {
		end = logEnd{last: tip.Seq, event: tip.EventSeq()}
		if w.lease.Begin != nil {
			if end.ended, err = w.lease.Begin(ctx, hub); err != nil {
				return ended, err
			}
		}
	}
	if expectsNone && end.event > 0 {
		if end.expired, err = w.isExpired(ctx, hub, tip, end.event); err != nil {
			return ended, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ends[hub] == nil:
		w.ends[hub] = &end
	case *w.ends[hub] == was:
		w.ends[hub].expired = end.expired
	}
	return w.ends[hub].ended, nil
}

// expiryTolerance is how much earlier than by this process's clock an event may have expired: a
// hub's stream expires by the broker's clock.
const expiryTolerance = time.Minute

// isExpired reports whether the event of a hub's log with a sequence may have expired.
func (w *queue) isExpired(
	ctx context.Context, hub domain.HubID, tip Tip, seq uint64,
) (bool, error) {
	records, err := w.group.reader.Read(ctx, hub, tip, seq, seq, 1)
	if errors.Is(err, ErrGone) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	cfg := &w.journal.cfg
	tolerance := min(expiryTolerance, cfg.Retention/100)
	return cfg.Now().Sub(records[0].Time) > cfg.Retention-tolerance, nil
}
