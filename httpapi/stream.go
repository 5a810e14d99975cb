package httpapi

import (
	"errors"
	"net/http"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

const (
	// streamBatch is the most events that go out in one write. The EventReader bounds their bytes.
	streamBatch = 100
	// maxStreamTime is the most that a write counts on Config.StreamTime: a client that reads slowly
	// holds up one stream, not the organization's.
	maxStreamTime = 100 * time.Millisecond
	// freeStreamTime is what a write takes when nothing else runs, and counts at most while no other
	// organization uses the service.
	freeStreamTime = 25 * time.Microsecond
	// streamsAhead is the time of writes that an organization's streams begin at once while other
	// organizations use the service: what others do then waits behind these.
	streamsAhead = 5 * time.Millisecond
	// streamDebt is how many seconds of Config.StreamTime the writes of an organization are behind at
	// most: thousands of streams, each of which has much to send.
	streamDebt = 4
)

// streamEvents streams a hub's events.
func (a *api) streamEvents(req *request, hub domain.HubID) error {
	q, err := req.readQuery()
	if err != nil {
		return err
	}
	return a.streamFeed(req, hubFeed{a.Events, a.Hubs, hub, req.key.Reach}, q, nil)
}

// streamFeed streams a feed as Server-Sent Events until the client leaves or the stream must end.
// It begins with the states, if not nil.
func (a *api) streamFeed(req *request, events feed, q query, states *snapshot) error {
	begin, err := q.feedStart(a.Now())
	if err != nil {
		return err
	}
	last, err := lastEventID(req.http)
	if err != nil {
		return err
	}
	if last != "" {
		begin, states = feedStart{after: last}, nil
	}
	positions, err := q.boolean("positions")
	if err != nil {
		return err
	}
	caughtUp, err := q.boolean("caught_up")
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
	if err := states.begin(); err != nil {
		return err
	}
	if states != nil {
		begin.after = states.position
	}
	after, err := begin.cursor(req.ctx, events)
	if err != nil {
		return err
	}
	reader, err := events.Follow(req.ctx, after)
	if err != nil {
		return err
	}
	defer reader.Close()
	a.metrics.streams.Inc()
	defer a.metrics.streams.Dec()

	s := stream{
		req: req, reader: reader, seen: seen, positions: positions != nil && *positions,
		hub: events.Reader("").Hub, states: states, took: freeStreamTime,
		out: response.NewStream(req, req.http, response.StreamConfig{
			Lifetime: a.StreamLifetime, Keepalive: a.StreamKeepalive,
		}),
	}
	if caughtUp != nil && *caughtUp {
		if s.caughtUp, err = reader.CaughtUp(req.ctx); err != nil {
			return err
		}
	}
	s.out.Begin()
	req.ended, req.err = s.run()
	if req.ended != endedByClient {
		s.out.ExtendDeadline()
	}
	req.events = s.sent
	a.metrics.ended[req.ended].Inc()
	return nil
}

// acquireStream counts the request among the event streams and reads of events that its key and
// its organization have open, until release is called.
func (a *api) acquireStream(req *request) (release func(), err error) {
	release, err = a.streams.Take(req.spender(), 1)
	if err != nil {
		a.metrics.limited.open.Inc()
	}
	return release, err
}

// lastEventID returns the position after which a client that reconnects continues, "" for none. It
// takes precedence over the parameters for the beginning, which such a client repeats. An empty
// Last-Event-ID counts as none, as in the HTML standard.
func lastEventID(r *http.Request) (string, error) {
	ids := r.Header["Last-Event-Id"]
	if len(ids) > 1 {
		return "", invalid("Last-Event-ID: must be given once")
	}
	if len(ids) == 1 {
		return ids[0], nil
	}
	return "", nil
}

// stream is one open event stream. The goroutine of its request owns it.
type stream struct {
	req    *request
	reader EventReader
	out    response.Stream
	seen   seen
	// positions reports that the client asked for positions: blocks that have only an id. Clients
	// must not take them for messages, but many do, so a stream has none by default.
	positions bool
	// hub is the hub whose log the stream has, "" for an organization's feed.
	hub domain.HubID
	// states are sent first; nil for none.
	states *snapshot
	// caughtUp reports whether the client has what was stored when it connected; nil if it did not
	// ask or has been told.
	caughtUp func() bool
	// sent is the number of events sent.
	sent int
	// took is how long the last write took, and the stream waited for a processor before it.
	took time.Duration
}

// run sends events until the stream ends, and returns why it ended. The error is for the log: the
// answer has begun, so the client cannot get it.
func (s *stream) run() (ended string, cause error) {
	a, gone, lost := s.req.api, s.req.ctx.Done(), s.req.api.lost()
	// The reader renews its cursor once it is older than half the retention. Sending the cursor
	// every quarter keeps the last id of a client that receives no events from expiring.
	renewal := time.Now().Add(a.Retention / 4)
	if s.states != nil {
		if ended, err := s.sendSnapshot(); ended != "" {
			return ended, err
		}
	} else if s.out.Send(s.idleFrames(false)) != nil { // the header, also without a frame
		return endedByClient, nil
	}
	// AfterFunc with a channel of its own: waiting on a timer's channel would add the timer to the
	// runtime's heap and remove it again at each event.
	due := make(chan struct{}, 1)
	timer := time.AfterFunc(time.Until(s.wake(renewal)), func() { due <- struct{}{} })
	defer timer.Stop()
	for begun := false; ; begun = true {
		if ended, err := s.sendEvents(); ended != "" {
			return ended, err
		}
		if s.caughtUp != nil && s.caughtUp() {
			s.caughtUp = nil
			if s.out.Send(s.appendMark(nil, typeCaughtUp)) != nil {
				return endedByClient, nil
			}
		}
		if !begun {
			s.seen.by(s.req.ctx, s.reader) // also a reader to which nothing happens
		}
		select {
		case <-s.reader.Ready():
			s.pace()
		case <-gone:
			return endedByClient, nil
		case <-a.Draining:
			return endedByDraining, nil
		case <-s.req.key.Revoked:
			return endedByRevoking, nil
		case <-lost: // the client reconnects to another replica
			return endedByBroker, nil
		case <-due:
			now := time.Now()
			switch {
			case s.out.Expired(now):
				return endedByLifetime, nil
			case s.req.keyEnded():
				return endedByRevoking, nil
			}
			renewal = now.Add(a.Retention / 4)
			frames := s.idleFrames(s.out.TakeKeepalive(now))
			if len(frames) > 0 && s.out.Send(frames) != nil {
				return endedByClient, nil
			}
			s.seen.by(s.req.ctx, s.reader)
			timer.Reset(time.Until(s.wake(renewal)))
		}
	}
}

// wake returns when the stream has something to do other than sending events.
func (s *stream) wake(renewal time.Time) time.Time {
	wake := renewal
	for _, next := range []time.Time{s.out.NextWake(), s.req.keyEnds} {
		if !next.IsZero() && next.Before(wake) {
			wake = next
		}
	}
	return wake
}

// sendEvents sends the events that the reader has now. If the stream is to end, it returns why.
func (s *stream) sendEvents() (ended string, cause error) {
	began := time.Now()
	frames, buf, err := s.next()
	if err != nil {
		return s.readerEnded(err)
	}
	if len(frames) == 0 {
		return "", nil
	}
	// A process that was suspended may hold events from after the key was revoked.
	if err := s.req.api.awaitFresh(s.req.ctx); err != nil {
		return s.readerEnded(err)
	}
	if s.req.keyEnded() {
		return endedByRevoking, nil
	}
	err = s.out.Send(frames)
	if buf != nil {
		s.req.api.buffers.put(buf) // before the pause, in which thousands of streams would keep theirs
	}
	if err != nil {
		return endedByClient, nil
	}
	s.seen.by(s.req.ctx, s.reader)
	s.took += time.Since(began)
	return "", nil
}

// pace waits before a write until the organization's streams may write again. The write counts as long as
// the one before took, with the time for which the stream waited for a processor: so the streams that want
// to write at the same time are one on average, and the fewer write in a second the more others have to do.
func (s *stream) pace() {
	a := s.req.api
	a.Shares.Active(s.req.key.Reach.OrgID, time.Now())
	wait := a.spendTime(s.req.key.Reach.OrgID, min(s.took, maxStreamTime), freeStreamTime)
	s.took = 0
	if wait <= 0 {
		return
	}
	due := time.Now().Add(wait)
	select {
	case <-time.After(wait): // what arrives meanwhile is one write
		s.took = time.Since(due)
	case <-s.req.ctx.Done():
	case <-s.req.key.Revoked:
	case <-a.Draining:
	}
}

// spendTime counts time of the processors that an organization takes, and returns how long it must wait
// before it takes more. While others use the service that is twice the time, and otherwise free at most.
func (a *api) spendTime(org string, took, free time.Duration) (wait time.Duration) {
	took, ahead := 2*took, min(streamsAhead, a.StreamTime)
	if !a.Shares.OthersActive(org, time.Now()) {
		took, ahead = min(took/2, free), a.StreamTime
	}
	return a.timeRates.SpendAhead(
		org, max(1, int(took.Microseconds())), int(ahead.Microseconds()), a.Now(),
	)
}

// readerEnded returns why a stream ends whose reader failed with err. Only endedByFault has a
// cause.
func (s *stream) readerEnded(err error) (ended string, cause error) {
	if s.req.ctx.Err() != nil {
		return endedByClient, nil
	}
	switch {
	case domain.CodeOf(err) == domain.CodeCursorExpired:
		return endedByExpiry, nil // the client gets the error when it reconnects
	case domain.CodeOf(err) == domain.CodeNotFound:
		return endedByRelease, nil
	case domain.CodeOf(err) == domain.CodeServiceUnavailable:
		return endedByBroker, nil
	case errors.Is(err, domain.ErrEventsClosed):
		return endedByDraining, nil
	default:
		return endedByFault, err
	}
}

// idleFrames returns what the stream sends besides events: a keepalive comment if one is due, and
// the position if the client asked for positions.
func (s *stream) idleFrames(keepalive bool) []byte {
	frames := make([]byte, 0, 64)
	if keepalive {
		frames = response.AppendKeepalive(frames)
	}
	if s.positions {
		frames = response.AppendLastEventID(frames, s.reader.Cursor())
	}
	return frames
}

// next returns the frames of the next events. It holds no reference to the reader's slice of
// events, which keeps more of the event cache alive than the events themselves. The caller must put
// buf, if not nil, back after the write.
func (s *stream) next() (frames []byte, buf *[]byte, err error) {
	events, err := s.reader.Next(s.req.ctx, streamBatch)
	if err != nil || len(events) == 0 {
		return nil, nil, err
	}
	s.req.api.metrics.events.Add(float64(len(events)))
	s.sent += len(events)
	if len(events) == 1 {
		return events[0].Frame, nil, nil
	}
	buf = s.req.api.buffers.get()
	frames = *buf
	for i := range events {
		frames = append(frames, events[i].Frame...)
	}
	*buf = frames
	return frames, buf, nil
}
