package logwriter

import (
	"context"
	"errors"
	"fmt"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/hubviews"
	"hubcloud/streams/jsapi"
)

// loadEnd makes sure that the writer knows the end of the request's log.
func (w *writer) loadEnd(ctx context.Context, req *request) error {
	w.mu.Lock()
	end := w.ends[req.hub]
	// An append that expects no event may follow events that have expired since: look again.
	known := end != nil && !(req.conditional && req.expected == 0 && end.event > 0)
	w.mu.Unlock()
	if known {
		return nil
	}
	// Callers share a read, so it does not end with one of them.
	read := w.loads.DoChan(string(req.hub), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), jsapi.Patience)
		defer cancel()
		return nil, w.readEnd(ctx, req.hub)
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

// readEnd reads the end of a hub's log: from what the journal has committed and, for what the
// journal no longer has, from the hub's view.
func (w *writer) readEnd(ctx context.Context, hub domain.HubID) error {
	w.mu.Lock()
	before := w.ends[hub]
	var was logEnd
	if before != nil {
		was = *before
	}
	w.mu.Unlock()

	var end logEnd
	tip, journaled := w.group.index.Tip(hub)
	api := jsapi.New(w.router.cfg.Conns.Shards[w.router.shardOf(hub)])
	stream := streams.HubStream(hub)
	if journaled {
		end.last = tip.Seq
		if err := w.views.Await(ctx, hub, tip.Seq); err != nil {
			return fmt.Errorf("hub log of %s: %w", hub, err)
		}
	} else {
		info, err := api.Info(ctx, stream)
		if err != nil && !errors.Is(err, jsapi.ErrNoStream) {
			return fmt.Errorf("hub log of %s: %w", hub, err)
		}
		if err == nil {
			end.last = info.State.LastSeq
		}
	}
	event, err := w.lastEvent(ctx, api, stream, hub)
	if err != nil {
		return fmt.Errorf("hub log of %s: %w", hub, err)
	}
	end.event = event

	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ends[hub] == nil:
		w.ends[hub] = &end
	case *w.ends[hub] == was:
		w.ends[hub].event = end.event
	}
	return nil
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
