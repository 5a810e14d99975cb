package live

import (
	"context"
	"errors"
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/sse"
	"hubcloud/streams/telemetry"
)

// streamBatch is how many events of one hub a stream reads at once.
const streamBatch = 100

// ErrTooManyStreams rejects a stream beyond StreamsPerMember.
var ErrTooManyStreams = domain.RateLimited(
	5*time.Second, "too many pages are open: close some first",
)

// Viewer is the member that reads a stream.
type Viewer struct {
	OrgID    string
	MemberID string
	// Ended is closed when the membership ends, SignedOut when the session ends.
	Ended, SignedOut <-chan struct{}
	// SignedIn reports whether the session is still valid. The stream calls it with each keepalive,
	// because SignedOut is not closed while the broker is unreachable.
	SignedIn func(ctx context.Context) bool
}

// StreamRequest is what a page posts to begin a stream.
type StreamRequest struct {
	// Hub is the only hub of the stream, "" for all hubs of the organization.
	Hub domain.HubID
	// Positions are the cursors of an earlier stream, by hub.
	Positions map[domain.HubID]string
	// Recent is how many seconds before now the events of hubs without a position begin. It is
	// shortened for hubs with many events, and ignored for organizations with many hubs.
	Recent int
}

// stream writes one response. All fields belong to the request's goroutine.
type stream struct {
	*Live
	out    sse.Stream
	viewer Viewer
	only   domain.HubID // StreamRequest.Hub
	group  EventGroup

	sent map[domain.HubID]HubState // the states that the page has
	// nextRefresh is when the states are read next.
	nextRefresh time.Time

	buffer    []byte    // frames of the next write
	nextWrite time.Time // the earliest time of the next write, by Pace
	caughtUp  bool      // hub.portal_now is sent

	lost <-chan struct{} // closed when the replica is cut off
}

// Stream writes the events of the viewer's organization until the stream ends. It returns an error
// only if nothing has been written.
func (l *Live) Stream(
	w http.ResponseWriter, r *http.Request, viewer Viewer, request StreamRequest,
) error {
	if !l.open.Acquire(viewer.MemberID) {
		return ErrTooManyStreams
	}
	defer l.open.Release(viewer.MemberID)
	ctx := r.Context()
	group := l.cfg.Events.Group()
	defer group.Close()
	s := &stream{
		Live: l, viewer: viewer, only: request.Hub, group: group,
		out: sse.New(w, r, sse.Config{
			Lifetime: l.cfg.StreamLifetime, Keepalive: l.cfg.StreamKeepalive,
		}),
		sent: map[domain.HubID]HubState{},
	}
	if l.cfg.Freshness != nil {
		s.lost = l.cfg.Freshness.Lost()
	}
	s.out.ExtendDeadline() // the deadline of other requests does not apply to streams
	if err := s.begin(ctx, request); err != nil {
		return err
	}
	l.metrics.streams.Inc()
	defer l.metrics.streams.Dec()
	s.out.Begin()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := s.run(ctx); err != nil {
		l.cfg.Logger.ErrorContext(
			ctx, "portal stream failed", "request_id", telemetry.RequestID(ctx),
			"org_id", viewer.OrgID, "error", err,
		)
	}
	return nil
}

// run sends events, states and keepalives until the stream ends. It returns an error if the service
// failed.
func (s *stream) run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
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
			s.buffer = sse.AppendKeepalive(s.buffer)
		case !now.Before(s.nextRefresh):
			if err := s.refreshStates(ctx); err != nil {
				return s.failure(ctx, err)
			}
			s.nextRefresh = now.Add(s.cfg.StateInterval)
		}
		wake := earlier(s.out.NextWake(), s.nextRefresh)
		ready := s.group.Ready()
		switch {
		case len(s.buffer) == 0:
		case more || !now.Before(s.nextWrite):
			if !s.authorized(ctx) || s.stopped(ctx) || s.flush() != nil {
				return nil
			}
			s.nextWrite = now.Add(s.cfg.Pace)
			if more { // Pace does not apply to a backlog
				continue
			}
		default:
			wake = earlier(wake, s.nextWrite)
			ready = nil // new events wait for the next write
		}
		timer.Reset(time.Until(wake))
		select {
		case <-ready:
		case <-timer.C:
		case <-ctx.Done():
		case <-s.cfg.Draining:
		case <-s.viewer.Ended:
		case <-s.viewer.SignedOut:
		case <-s.lost:
		}
	}
	return nil
}

// authorized reports whether the viewer's membership is confirmed. A process that was suspended may
// hold events from after the membership ended.
func (s *stream) authorized(ctx context.Context) bool {
	freshness := s.cfg.Freshness
	return freshness == nil || freshness.Fresh() || freshness.Confirm(ctx) == nil
}

// stopped reports whether the stream must end or the client is gone.
func (s *stream) stopped(ctx context.Context) bool {
	select {
	case <-ctx.Done():
	case <-s.cfg.Draining:
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
	for len(s.buffer) < sse.BatchBytes {
		hub, events, err := s.group.Next(ctx, streamBatch)
		if codeOf(err) == domain.CodeCursorExpired {
			if err := s.follow(ctx, hub, ""); err != nil {
				return false, err
			}
			s.appendGap(hub)
			continue
		}
		if s.unowned(err) { // released: the refresh informs the page
			s.group.Leave(hub)
			s.refreshSoon()
			continue
		}
		if err != nil || len(events) == 0 {
			return false, err
		}
		s.metrics.events.Add(float64(len(events)))
		for _, event := range events {
			s.buffer = append(s.buffer, event.Frame...)
			if isHubEvent(event.Envelope) {
				s.refreshSoon()
			}
		}
	}
	return true, nil
}

// failure returns err if the service failed, and nil if the request or the service ended, if the
// service is unavailable, or if the stream's only hub was released. The page reconnects.
func (s *stream) failure(ctx context.Context, err error) error {
	if code := codeOf(err); ctx.Err() != nil || errors.Is(err, ErrEventsClosed) ||
		code == domain.CodeNotFound || code == domain.CodeServiceUnavailable {
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
