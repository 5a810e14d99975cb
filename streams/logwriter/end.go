package logwriter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hubviews"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// loadEnd makes sure that the writer knows the end of the request's log.
func (w *writer) loadEnd(ctx context.Context, req *request) error {
	w.mu.Lock()
	end := w.ends[req.hub]
	w.mu.Unlock()
	expectsNone := req.conditional && req.expected == 0
	// An append that expects no event may follow events that have expired since: look again.
	if end != nil && !(expectsNone && !end.endsWith(0)) {
		return nil
	}
	// Callers share a read, so it does not end with one of them.
	key := fmt.Sprint(req.hub, expectsNone)
	read := w.loads.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jsapi.Patience)
		defer cancel()
		return nil, w.readEnd(ctx, req.hub, expectsNone)
	})
	select {
	case result := <-read:
		if errors.Is(result.Err, hubviews.ErrStopped) {
			return errStopped
		}
		return result.Err
	case <-w.fenced:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// readEnd reads the end of a hub's log, and whether its last event has expired if that matters.
func (w *writer) readEnd(ctx context.Context, hub domain.HubID, expectsNone bool) error {
	w.mu.Lock()
	before := w.ends[hub]
	var was logEnd
	if before != nil {
		was = *before
	}
	w.mu.Unlock()

	end, err := w.endOf(ctx, hub, expectsNone)
	if err != nil {
		return fmt.Errorf("hub log of %s: %w", hub, err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ends[hub] == nil:
		w.ends[hub] = &end
	case *w.ends[hub] == was:
		w.ends[hub].event, w.ends[hub].expired = end.event, end.expired
	}
	return nil
}

// endOf returns the end of a hub's log: from what the journal has committed and, for what the
// journal never had, from the hub's view, which may be away.
func (w *writer) endOf(ctx context.Context, hub domain.HubID, expectsNone bool) (logEnd, error) {
	tip, journaled := w.group.index.Tip(hub)
	if journaled {
		if err := w.cutView(ctx, hub, tip.Seq); err != nil {
			return logEnd{}, err
		}
	}
	end := logEnd{last: tip.Seq, event: tip.EventSeq()}
	if end.event > 0 {
		if !expectsNone {
			return end, nil
		}
		var err error
		end.expired, err = w.expired(ctx, hub, tip)
		return end, err
	}
	api := jsapi.New(w.router.cfg.Conns.Shards[w.router.shardOf(hub)])
	stream := streams.HubStream(hub)
	if journaled {
		covered, err := w.group.reader.Covers(ctx, hub, tip)
		if covered || err != nil {
			return end, err // without events
		}
		if err := w.views.Await(ctx, hub, tip.Seq); err != nil {
			return end, err
		}
	} else {
		info, err := api.Info(ctx, stream)
		if err != nil && !errors.Is(err, jsapi.ErrNoStream) {
			return end, err
		}
		if err == nil {
			end.last = info.State.LastSeq
		}
	}
	var err error
	end.event, err = w.lastEvent(ctx, api, stream, hub)
	return end, err
}

// cutView returns once the hub's view is not longer than its log in the journal, which ends with a
// sequence. A view whose server is away is compared once it is back.
func (w *writer) cutView(ctx context.Context, hub domain.HubID, end uint64) error {
	api := jsapi.New(w.router.cfg.Conns.Shards[w.router.shardOf(hub)]).WithRetry(askOnce)
	info, err := api.Info(ctx, streams.HubStream(hub))
	if err != nil || info.State.LastSeq <= end {
		return nil
	}
	return w.views.Await(ctx, hub, end)
}

// askOnce is the policy for requests without which an append can go on.
var askOnce = jsapi.Retry{
	Total: time.Second, Try: time.Second, If: func(error) bool { return false },
}

// expiryTolerance is how much earlier than by this process's clock an event may have expired: a
// view expires by the broker's clock.
const expiryTolerance = time.Minute

// expired reports whether the last event of a hub's log may have expired.
func (w *writer) expired(ctx context.Context, hub domain.HubID, tip journal.Tip) (bool, error) {
	seq := tip.EventSeq()
	records, err := w.group.reader.Read(ctx, hub, tip, seq, seq, 1)
	if errors.Is(err, journal.ErrGone) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	cfg := &w.router.cfg
	tolerance := min(expiryTolerance, cfg.Retention/100)
	return cfg.Now().Sub(records[0].Time) > cfg.Retention-tolerance, nil
}

// lastEvent returns the sequence of the last event that the hub's view has, 0 for none.
func (w *writer) lastEvent(
	ctx context.Context, api jsapi.API, stream string, hub domain.HubID,
) (last uint64, err error) {
	for _, subject := range []string{streams.HubEventSubject(hub), streams.CloudEventSubject(hub)} {
		msg, err := api.GetLast(ctx, stream, subject)
		if errors.Is(err, jsapi.ErrNotFound) || errors.Is(err, jsapi.ErrNoStream) {
			continue
		}
		if err != nil {
			return 0, err
		}
		last = max(last, msg.Sequence)
	}
	return last, nil
}
