package portal

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
	"hubcloud/streams/shares"
	"hubcloud/streams/telemetry"
)

// streamBatch is how many events a stream reads at once.
const streamBatch = 100

// maxStreams is how many streams are open on a replica, of which each organization gets half of
// what the others leave.
const maxStreams = 10_000

// streamViewer is the member that reads a stream.
type streamViewer struct {
	OrgID    string
	MemberID string
	// Ended is closed when the membership ends, SignedOut when the session ends.
	Ended, SignedOut <-chan struct{}
	// SignedIn reports whether the session is still valid. The stream calls it with each keepalive,
	// because SignedOut is not closed while the broker is unreachable.
	SignedIn func(ctx context.Context) bool
}

// streamRequest is what a page posts to begin a stream.
type streamRequest struct {
	// Hub is the only hub of the stream, and Site the site of its hubs. If both are "", the stream
	// has all hubs of the organization.
	Hub  domain.HubID
	Site string
	// Position is the position at which an earlier stream ended, "" for none.
	Position string
	// Recent is how many seconds before now a stream without a position begins. It is shortened if
	// many events follow, and ignored for organizations with many hubs.
	Recent int
}

// filter returns the filter of the stream's events.
func (r streamRequest) filter() (filter domain.EventFilter) {
	switch {
	case r.Hub != "":
		filter.Hubs = []domain.HubID{r.Hub}
	case r.Site != "":
		filter.Sites = []string{r.Site}
	}
	return filter
}

// stream writes one response. All fields belong to the request's goroutine.
type stream struct {
	*Portal
	out    response.Stream
	viewer streamViewer
	filter domain.EventFilter
	reader EventReader // nil before begin has followed the feed
	timer  *time.Timer

	sent map[domain.HubID]hubState // the states that the page has
	// nextRefresh is when the states are read next.
	nextRefresh time.Time
	// hubsChanged is closed when the organization has got, moved or lost a hub since then.
	hubsChanged <-chan struct{}

	buffer   []byte // frames of the next write
	caughtUp bool   // hub.portal_now is sent

	lost <-chan struct{} // closed when the replica is cut off
}

// stream writes the events of the viewer's organization until the stream ends. It returns an error
// only if nothing has been written.
func (p *Portal) stream(
	w http.ResponseWriter, r *http.Request, viewer streamViewer, request streamRequest,
) error {
	release, err := p.open.Take(shares.Spender{Org: viewer.OrgID, ID: viewer.MemberID}, 1)
	if err != nil {
		return err
	}
	defer release()
	ctx := r.Context()
	s := &stream{
		Portal: p, viewer: viewer, filter: request.filter(), timer: time.NewTimer(0),
		out: response.NewStream(w, r, response.StreamConfig{
			Lifetime: p.StreamLifetime,
			// Keepalives renew the position, which must not expire while no event arrives.
			Keepalive: min(p.StreamKeepalive, p.Retention/4),
		}),
		sent: map[domain.HubID]hubState{},
	}
	defer s.close()
	if p.Freshness != nil {
		s.lost = p.Freshness.Lost()
	}
	s.out.ExtendDeadline() // the deadline of other requests does not apply to streams
	if err := s.begin(ctx, request); err != nil {
		return err
	}
	p.metrics.streams.Inc()
	defer p.metrics.streams.Dec()
	s.out.Begin()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := s.run(ctx); err != nil {
		p.Logger.ErrorContext(
			ctx, "portal stream failed", "request_id", telemetry.RequestID(ctx),
			"org_id", viewer.OrgID, "error", err,
		)
	}
	return nil
}

func (s *stream) close() {
	s.timer.Stop()
	if s.reader != nil {
		s.reader.Close()
	}
}

// run sends events, states and keepalives until the stream ends. It returns an error if the service
// failed.
func (s *stream) run(ctx context.Context) error {
	defer s.out.ExtendDeadline()
	for !s.stopped(ctx) {
		more, err := s.collectEvents(ctx)
		if err != nil || ctx.Err() != nil {
			return s.failure(ctx, err)
		}
		if !more && !s.caughtUp {
			s.caughtUp = true
			s.appendEvent("hub.portal_now", struct{}{})
		}
		now := time.Now()
		switch {
		case s.out.Expired(now):
			_ = s.flush() // the stream ends either way
			return nil
		case s.out.TakeKeepalive(now):
			if !s.viewer.SignedIn(ctx) {
				return nil
			}
			s.buffer = response.AppendKeepalive(s.buffer)
			s.appendPosition()
		case !now.Before(s.nextRefresh):
			if err := s.refreshStates(ctx); err != nil {
				return s.failure(ctx, err)
			}
		}
		if len(s.buffer) > 0 &&
			(!s.authorized(ctx) || s.stopped(ctx) || s.flush() != nil) {
			return nil
		}
		if !more { // Pace does not apply to a backlog
			s.wait(ctx, earlier(s.out.NextWake(), s.nextRefresh), s.reader.Ready())
			s.wait(ctx, now.Add(s.Pace), nil)
		}
	}
	return nil
}

// wait returns at a time, when ready is closed, when the states must be refreshed, and when the
// stream must end.
func (s *stream) wait(ctx context.Context, until time.Time, ready <-chan struct{}) {
	pause := time.Until(until)
	if pause <= 0 {
		return
	}
	s.timer.Reset(pause)
	select {
	case <-ready:
	case <-s.timer.C:
	case <-s.hubsChanged:
		s.refreshSoon()
		s.hubsChanged = nil // until the states are read
	case <-ctx.Done():
	case <-s.Draining:
	case <-s.viewer.Ended:
	case <-s.viewer.SignedOut:
	case <-s.lost:
	}
}

// authorized reports whether the viewer's membership is confirmed. A process that was suspended may
// hold events from after the membership ended.
func (s *stream) authorized(ctx context.Context) bool {
	freshness := s.Freshness
	return freshness == nil || freshness.Fresh() || freshness.Confirm(ctx) == nil
}

// stopped reports whether the stream must end or the client is gone.
func (s *stream) stopped(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-s.Draining:
	case <-s.viewer.Ended:
	case <-s.viewer.SignedOut:
	case <-s.lost:
	default:
		return false
	}
	return true
}

// collectEvents appends new events to the buffer, about as many as one write should have. more
// reports whether there may be more.
func (s *stream) collectEvents(ctx context.Context) (more bool, err error) {
	for len(s.buffer) < response.BatchBytes {
		events, err := s.reader.Next(ctx, streamBatch)
		if err != nil {
			return false, err
		}
		if len(events) == 0 {
			return !s.caughtUp && isReady(s.reader), nil
		}
		s.metrics.events.Add(float64(len(events)))
		for _, event := range events {
			s.buffer = append(s.buffer, event.Frame...)
			switch {
			case hasType(event.Envelope, "hub."):
				s.refreshSoon()
			case hasType(event.Envelope, domain.EventFeedGap):
				s.metrics.gaps.Inc()
			}
		}
	}
	return true, nil
}

// failure returns err if the service failed. It returns nil if the request or the service ended, if
// the service is unavailable, if the stream's only hub was released, and if the reader was so slow
// that its next events have expired. The page reconnects.
func (s *stream) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, domain.ErrEventsClosed) {
		return nil
	}
	switch codeOf(err) {
	case domain.CodeNotFound, domain.CodeServiceUnavailable, domain.CodeCursorExpired:
		return nil
	}
	return err
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
