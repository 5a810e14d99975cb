package live

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/sse"
	"hubcloud/streams/telemetry"
)

const (
	// streamBatch is the most events of one hub that a stream reads at once.
	streamBatch = 100
	// settleAfter is how soon after an event of a hub's connection the states are looked at: the
	// read models have it by then.
	settleAfter = time.Second
	// recentHubs is the most hubs of which a stream that begins anew tells what was before,
	// recentEvents the most events of each: of more, nobody reads it.
	recentHubs   = 50
	recentEvents = 100
)

// ErrEventsClosed is what an EventGroup answers once the service has stopped reading event logs.
var ErrEventsClosed = errors.New("the event logs are closed")

// ErrTooManyStreams refuses one stream more.
var ErrTooManyStreams = &domain.Error{Code: domain.CodeRateLimited, RetryAfter: 5 * time.Second,
	Message: "too many pages are open: close some first"}

// Viewer is who looks at a page.
type Viewer struct {
	OrgID    string
	MemberID string
	// Ended is closed when the viewer is a member no more, SignedOut when the viewer's session
	// ends.
	Ended, SignedOut <-chan struct{}
	// SignedIn says whether the session still stands. It is asked with each keepalive: nobody tells
	// of the end of a session while the broker is away.
	SignedIn func(ctx context.Context) bool
}

// StreamRequest is what a page posts to begin a stream.
type StreamRequest struct {
	// Hub leaves only this hub; "" stands for all.
	Hub domain.HubID
	// Positions are where an earlier stream stood.
	Positions map[domain.HubID]string
	// Recent is how many seconds before now the stream begins, for hubs without a position, when
	// there are few.
	Recent int
}

// stream is the one owner of one response.
type stream struct {
	*Live
	ctx    context.Context
	out    sse.Stream
	viewer Viewer
	only   domain.HubID
	group  EventGroup
	// told is what the page knows of each hub.
	told map[domain.HubID]HubState
	// behind says that the read models had a hub at the beginning that this process does not know.
	behind bool
	// buffer is what goes out with the next write, which is not before next.
	buffer []byte
	next   time.Time
	// lost is closed once the replica is cut off; the page comes back to another.
	lost <-chan struct{}
}

// Stream answers with the events of the viewer's organization until there is a reason to end. An
// error is a refusal: nothing is out by then.
func (l *Live) Stream(
	w http.ResponseWriter, r *http.Request, viewer Viewer, want StreamRequest,
) error {
	if !l.open.Acquire(viewer.MemberID) {
		return ErrTooManyStreams
	}
	defer l.open.Release(viewer.MemberID)
	group := l.Events.Group()
	defer group.Close()
	s := &stream{
		Live: l, ctx: r.Context(), viewer: viewer, only: want.Hub, group: group,
		out:  sse.New(w, r, sse.Config{Lifetime: l.StreamLifetime, Keepalive: l.StreamKeepalive}),
		told: map[domain.HubID]HubState{},
	}
	if l.Freshness != nil {
		s.lost = l.Freshness.Lost()
	}
	s.out.ExtendDeadline() // the deadline of other requests does not apply to streams
	if err := s.begin(want); err != nil {
		return err
	}
	l.metrics.streams.Inc()
	defer l.metrics.streams.Dec()
	s.out.Begin()
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := s.run(); err != nil {
		l.Log.ErrorContext(
			s.ctx, "a stream of events has failed", "request_id", telemetry.RequestID(s.ctx),
			"org_id", viewer.OrgID, "error", err,
		)
	}
	return nil
}

// begin follows every hub and puts positions and states before everything else. States are read
// after the positions: what happens in between is told twice rather than not at all.
func (s *stream) begin(want StreamRequest) error {
	states, err := s.States(s.ctx, s.viewer.OrgID, s.only)
	if err != nil {
		return err
	}
	recent := time.Duration(0)
	if want.Recent > 0 && len(states) <= recentHubs {
		recent = min(time.Duration(want.Recent)*time.Second, s.Retention)
	}
	positions := make(map[domain.HubID]string, len(states))
	for _, state := range states {
		err := s.start(state.ID, want.Positions[state.ID], recent)
		if s.unknown(err) {
			s.behind = true
			continue
		}
		if err != nil {
			return err
		}
		positions[state.ID] = s.group.Position(state.ID)
	}
	if states, err = s.States(s.ctx, s.viewer.OrgID, s.only); err != nil {
		return err
	}
	s.tell("hub.portal_positions", positions)
	s.tellStates(true, changed(s.followed(states), s.told))
	return nil
}

// start follows a hub's log from behind a cursor or, without one, from so long ago; 0 is now.
func (s *stream) start(hub domain.HubID, after string, recent time.Duration) (err error) {
	if after == "" && recent > 0 {
		if after, err = s.recently(hub, recent); err != nil {
			return err
		}
	}
	return s.follow(hub, after)
}

// unknown reports whether an error means that a hub of several belongs to the organization no more,
// or not yet as far as this process knows. The read models may be ahead or behind.
func (s *stream) unknown(err error) bool {
	return s.only == "" && codeOf(err) == domain.CodeNotFound
}

// followed returns the states of the hubs whose logs are followed.
func (s *stream) followed(states []HubState) []HubState {
	return slices.DeleteFunc(
		states, func(state HubState) bool { return s.group.Position(state.ID) == "" },
	)
}

// recently gives a cursor to begin with what a hub has told since so long ago; where that is more
// than anybody reads, since a tenth or a hundredth of it, or its log's end.
func (s *stream) recently(hub domain.HubID, ago time.Duration) (string, error) {
	for range 3 {
		after, err := s.Events.At(s.ctx, hub, s.Now().Add(-ago))
		if err != nil {
			return "", err
		}
		page, err := s.Events.Page(s.ctx, hub, after, recentEvents)
		if err != nil && codeOf(err) != domain.CodeCursorExpired {
			return "", err
		}
		if err == nil && !page.HasMore {
			return after, nil
		}
		ago /= 10
	}
	return "", nil
}

// follow goes on with a hub's log, or begins at its end and says that there is a gap where that
// cannot be.
func (s *stream) follow(hub domain.HubID, after string) error {
	err := s.group.Follow(s.ctx, hub, after)
	if code := codeOf(err); after != "" &&
		(code == domain.CodeCursorExpired || code == domain.CodeInvalidRequest) {
		s.tellGap(hub)
		return s.group.Follow(s.ctx, hub, "")
	}
	return err
}

// run sends until there is a reason to end. An error is a fault of the service.
func (s *stream) run() error {
	look := time.Now().Add(s.StateInterval)
	if s.behind {
		look = sooner(look, time.Now().Add(settleAfter))
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	defer s.out.ExtendDeadline()
	for caughtUp := false; !s.over(); {
		more, moved, err := s.collect()
		if err != nil || s.ctx.Err() != nil {
			return s.ended(err)
		}
		if !more && !caughtUp {
			caughtUp = true
			s.tell("hub.portal_now", struct{}{})
		}
		now := time.Now()
		if moved {
			look = sooner(look, now.Add(settleAfter))
		}
		switch {
		case s.out.Expired(now):
			s.flush()
			return nil
		case s.out.KeepaliveDue(now):
			if !s.viewer.SignedIn(s.ctx) {
				return nil
			}
			s.buffer = sse.AppendKeepalive(s.buffer)
		case !now.Before(look):
			if err := s.look(); err != nil {
				return s.ended(err)
			}
			look = now.Add(s.StateInterval)
		}
		wake := sooner(s.out.NextWake(), look)
		ready := s.group.Ready()
		switch {
		case len(s.buffer) == 0:
		case more || !now.Before(s.next):
			if !s.confirmed() || s.over() || !s.flush() {
				return nil
			}
			s.next = now.Add(s.Pace)
			if more { // who has much to catch up with is not kept waiting
				continue
			}
		default:
			wake = sooner(wake, s.next)
			ready = nil // what comes until then is collected then
		}
		timer.Reset(time.Until(wake))
		select {
		case <-ready:
		case <-timer.C:
		case <-s.ctx.Done():
		case <-s.Draining:
		case <-s.viewer.Ended:
		case <-s.viewer.SignedOut:
		case <-s.lost:
		}
	}
	return nil
}

// confirmed reports whether the viewer is still known to be one: a process that stood still may
// hold what came afterwards.
func (s *stream) confirmed() bool {
	return s.Freshness == nil || s.Freshness.Fresh() || s.Freshness.Confirm(s.ctx) == nil
}

// over says that nobody may or wants to read on.
func (s *stream) over() bool {
	select {
	case <-s.ctx.Done():
	case <-s.Draining:
	case <-s.viewer.Ended:
	case <-s.viewer.SignedOut:
	case <-s.lost:
	default:
		return false
	}
	return true
}

// collect puts what hubs have into the buffer, as far as one write goes: more says that there may
// be more, moved that a hub may have another state.
func (s *stream) collect() (more, moved bool, err error) {
	for len(s.buffer) < sse.BatchBytes {
		hub, events, err := s.group.Next(streamBatch)
		if codeOf(err) == domain.CodeCursorExpired {
			if err := s.follow(hub, ""); err != nil {
				return false, false, err
			}
			s.tellGap(hub)
			continue
		}
		if s.unknown(err) { // it was released; the page is told with the states
			s.group.Leave(hub)
			moved = true
			continue
		}
		if err != nil || len(events) == 0 {
			return false, moved, err
		}
		s.metrics.events.Add(float64(len(events)))
		for _, event := range events {
			s.buffer = append(s.buffer, event.Frame...)
			moved = moved || isLink(event.Envelope)
		}
	}
	return true, moved, nil
}

// look reads the states again, tells what has changed, follows hubs that were added meanwhile, and
// tells all states when hubs were released.
func (s *stream) look() error {
	states, err := s.States(s.ctx, s.viewer.OrgID, s.only)
	if err != nil {
		return err
	}
	for _, state := range states {
		if s.group.Position(state.ID) != "" {
			continue
		}
		err := s.follow(state.ID, "")
		if s.unknown(err) {
			continue
		}
		if err != nil {
			return err
		}
		s.tell(
			"hub.portal_positions", map[domain.HubID]string{state.ID: s.group.Position(state.ID)},
		)
	}
	states = s.followed(states)
	if s.forget(states) {
		clear(s.told)
		s.tellStates(true, changed(states, s.told))
		return nil
	}
	if news := changed(states, s.told); len(news) > 0 {
		s.tellStates(false, news)
	}
	return nil
}

// forget leaves the logs of hubs that the page was told of and that are not among the states, and
// reports whether there are any.
func (s *stream) forget(states []HubState) bool {
	gone := maps.Clone(s.told)
	for _, state := range states {
		delete(gone, state.ID)
	}
	for hub := range gone {
		s.group.Leave(hub)
	}
	return len(gone) > 0
}

// ended tells a fault from the end of the request or of the service, and from a hub that is so new
// that its owner is not known here yet: the page comes back.
func (s *stream) ended(err error) error {
	if code := codeOf(err); s.ctx.Err() != nil || errors.Is(err, ErrEventsClosed) ||
		code == domain.CodeNotFound ||
		code == domain.CodeServiceUnavailable {
		return nil
	}
	return err
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// codeOf gives the code of an error, "" for none.
func codeOf(err error) domain.Code {
	if err == nil {
		return ""
	}
	return domain.CodeOf(err)
}
