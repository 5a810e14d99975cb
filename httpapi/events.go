package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"hubcloud/domain"
)

// The contract's bounds of a read of events.
const (
	maxEventPage     = 500
	defaultEventPage = 100
	maxEventWait     = 60 // seconds
)

// readEvents answers with a page of a hub's events.
func (a *api) readEvents(req *request, hub domain.HubID) error {
	q, err := req.readQuery()
	if err != nil {
		return err
	}
	return a.readFeed(req, hubFeed{a.Events, a.Hubs, hub, req.key.Reach}, q)
}

// readFeed answers with a page of a feed.
func (a *api) readFeed(req *request, events feed, q query) error {
	begin, err := q.feedStart(a.Now())
	if err != nil {
		return err
	}
	limit, err := q.integer(
		"limit", 1, maxEventPage, cmp.Or(begin.last, defaultEventPage),
	)
	if err != nil {
		return err
	}
	wait, err := q.integer("wait", 0, maxEventWait, 0)
	if err != nil {
		return err
	}
	seen, err := a.newSeen(req, events)
	if err != nil {
		return err
	}
	release, err := a.acquireStream(req)
	if err != nil {
		return err
	}
	defer release()
	after, err := begin.cursor(req.ctx, events)
	if err != nil {
		return err
	}
	size := req.chunkSize()
	var part domain.EventPage
	if wait == 0 {
		part, err = events.Part(req.ctx, after, limit, size, 0)
	} else {
		part, err = a.waitForEvents(
			req, events, after, limit, size, time.Duration(wait)*time.Second,
		)
	}
	if err != nil {
		return err
	}
	req.setLag(part, limit)
	next, lag, err := req.writePage(events, limit, part)
	if err == nil && next != "" {
		seen.at(next, lag)
	}
	return err
}

// waitForEvents reads a page and waits for its first event if there is none yet. It returns early
// with what there is when the service stops, with unauthenticated when the key is revoked, and with
// service_unavailable when this replica loses the broker.
func (a *api) waitForEvents(
	req *request, events feed, after string, limit, size int, wait time.Duration,
) (domain.EventPage, error) {
	a.metrics.longPolls.Inc()
	defer a.metrics.longPolls.Dec()
	// The time for writing the answer begins after the wait. After an error the connection is
	// closed, and the write fails.
	_ = http.NewResponseController(req.w).SetWriteDeadline(time.Now().Add(wait + writeTimeout))
	if left := req.keyEnds.Sub(a.Now()); !req.keyEnds.IsZero() {
		wait = min(wait, left)
	}
	ctx, cancel := context.WithCancel(req.ctx)
	watched, lost := make(chan struct{}), a.lost()
	go func() {
		defer close(watched)
		select {
		case <-a.Draining:
		case <-req.key.Revoked:
		case <-lost:
		case <-ctx.Done():
		}
		cancel()
	}()
	page, err := events.Part(ctx, after, limit, size, wait)
	cancel()
	<-watched
	if err := req.ctx.Err(); err != nil {
		return domain.EventPage{}, err
	}
	// Also for a process that was suspended meanwhile: the key may have been revoked.
	if err := a.awaitFresh(req.ctx); err != nil {
		return domain.EventPage{}, err
	}
	if req.keyEnded() {
		return domain.EventPage{}, errBadKey
	}
	return page, err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
