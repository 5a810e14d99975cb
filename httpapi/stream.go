package httpapi

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"hubcloud/domain"
)

const (
	// writeTimeout is how long a client may take to make room for one write.
	writeTimeout = 10 * time.Second
	// streamBatch is the most events that go out in one write, and streamBatchBytes about the most
	// bytes that an EventReader gives for one: what a client that has stopped reading can hold
	// back.
	streamBatch      = 100
	streamBatchBytes = 32 << 10
	// streamSendBuffer is the room that a stream's connection has in the kernel. Left to itself the
	// kernel gives a reader that stalls megabytes.
	streamSendBuffer = 2 * streamBatchBytes
)

// Header fields of every stream. no-transform and X-Accel-Buffering keep proxies from collecting
// events.
var (
	contentTypeEvents = []string{"text/event-stream"}
	cacheControlSSE   = []string{"no-cache, no-transform"}
	noBuffering       = []string{"no"}
)

func (a *api) streamEvents(x *exchange) error {
	hub, err := a.ownHub(x)
	if err != nil {
		return err
	}
	after, err := startOfStream(x.r)
	if err != nil {
		return err
	}
	if err := a.hold(x); err != nil {
		return err
	}
	defer a.streams.release(x.key.ID)
	reader, err := a.Events.Follow(x.ctx, hub, after)
	if err != nil {
		return err
	}
	defer reader.Close()
	a.metrics.streams.Inc()
	defer a.metrics.streams.Dec()

	header := x.w.Header()
	header["Content-Type"] = contentTypeEvents
	header["Cache-Control"] = cacheControlSSE
	header["X-Accel-Buffering"] = noBuffering
	boundSendBuffer(x.r)
	s := stream{x: x, reader: reader, control: http.NewResponseController(x.w)}
	x.ended, x.err = s.run()
	x.events = s.sent
	a.metrics.ended[x.ended].Inc()
	return nil
}

// hold counts what may last as long as the client wants: release ends it.
func (a *api) hold(x *exchange) error {
	if a.streams.acquire(x.key.ID) {
		return nil
	}
	a.metrics.limited.open.Inc()
	return &domain.Error{Code: domain.CodeRateLimited, RetryAfter: time.Second,
		Message: "too many event streams and reads of events are open with this API key: close some first"}
}

// startOfStream gives the cursor to go on from, "" for none. The header wins over the query
// parameter, which is for clients that cannot set it on their first request; an empty header is
// none, as EventSource's HTML standard has it.
func startOfStream(r *http.Request) (string, error) {
	q, err := readQuery(r.URL.RawQuery, "after")
	if err != nil {
		return "", err
	}
	ids := r.Header["Last-Event-Id"]
	if len(ids) > 1 {
		return "", invalid("Last-Event-ID: must be given once")
	}
	if len(ids) == 1 && ids[0] != "" {
		return ids[0], nil
	}
	after, _ := q.get("after")
	return after, nil
}

// stream is the one owner of one response. Server-Sent Events are section 9.2 of the HTML standard.
type stream struct {
	x       *exchange
	reader  EventReader
	control *http.ResponseController
	// deadline is up to when the connection takes writes.
	deadline time.Time
	// sent is how many events went out.
	sent int
}

// run sends until there is a reason to end, and says which. The error is for the log: by then the
// answer is under way.
func (s *stream) run() (ended string, cause error) {
	a, gone, lost := s.x.api, s.x.ctx.Done(), s.x.api.lost()
	now := time.Now()
	expires := now.Add(spread(a.StreamLifetime))
	keepalive := now.Add(a.StreamKeepalive)
	// The log gives a position anew once it is older than half the retention: asked every quarter,
	// a client that has heard nothing for long can still go on from the last that it was told.
	renewal := now.Add(a.Retention / 4)
	if err := s.write(s.position("")); err != nil {
		return endedByClient, nil
	}
	// A timer that is waited for on its own channel enters and leaves the runtime's timers at each
	// wait, which is at each event.
	due := make(chan struct{}, 1)
	timer := time.AfterFunc(
		time.Until(earliest(expires, keepalive, renewal)), func() { due <- struct{}{} },
	)
	defer timer.Stop()
	for {
		frames, buf, err := s.next()
		if err != nil {
			return s.broken(err)
		}
		if len(frames) > 0 {
			// A process that stood still may hold events from after the revocation of the key.
			if err = a.confirm(s.x.ctx); err != nil {
				return s.broken(err)
			}
			if isClosed(s.x.key.Revoked) {
				s.extend()
				return endedByRevoking, nil
			}
			err = s.write(frames)
		}
		if buf != nil {
			a.buffers.put(buf)
		}
		if err != nil {
			return endedByClient, nil
		}
		select {
		case <-s.reader.Ready():
		case <-gone:
			return endedByClient, nil
		case <-a.Draining:
			s.extend()
			return endedByDraining, nil
		case <-s.x.key.Revoked:
			s.extend()
			return endedByRevoking, nil
		case <-lost: // the client comes back to another replica
			s.extend()
			return endedByBroker, nil
		case <-due:
			now := time.Now()
			if !now.Before(expires) {
				s.extend()
				return endedByLifetime, nil
			}
			before := ""
			if !now.Before(keepalive) {
				before = ": keepalive\n\n"
				if keepalive = keepalive.Add(a.StreamKeepalive); now.After(keepalive) {
					// the process stood still: what was missed is not made up for
					keepalive = now.Add(a.StreamKeepalive)
				}
			}
			renewal = now.Add(a.Retention / 4)
			if err := s.write(s.position(before)); err != nil {
				return endedByClient, nil
			}
			timer.Reset(time.Until(earliest(expires, keepalive, renewal)))
		}
	}
}

// broken ends a stream whose reader can give no more.
func (s *stream) broken(err error) (ended string, cause error) {
	if s.x.ctx.Err() != nil {
		return endedByClient, nil
	}
	s.extend()
	switch {
	case domain.CodeOf(err) == domain.CodeCursorExpired:
		return endedByExpiry, nil // as the client hears when it comes back
	case domain.CodeOf(err) == domain.CodeNotFound:
		return endedByRelease, nil // the organization has the hub no more
	case domain.CodeOf(err) == domain.CodeServiceUnavailable:
		return endedByBroker, nil
	case errors.Is(err, ErrEventsClosed):
		return endedByDraining, nil
	default:
		return endedByFault, err
	}
}

// position makes a block that dispatches no event and sets the client's last event id: the next
// connection of a client that has seen nothing yet begins where this one did. What goes before it
// is a block of its own, so that clients which take a stream apart at empty lines see each as it
// is.
func (s *stream) position(before string) []byte {
	return []byte(before + "id: " + s.reader.Position() + "\n\n")
}

// next returns what is there now as it goes out, in one write and with no hold on more than that:
// the slice of events holds more of the cache than its events. The buffer, if any, is to be put
// back after the write.
func (s *stream) next() (frames []byte, buf *[]byte, err error) {
	events, err := s.reader.Next(streamBatch)
	if err != nil || len(events) == 0 {
		return nil, nil, err
	}
	s.x.api.metrics.events.Add(float64(len(events)))
	s.sent += len(events)
	if len(events) == 1 {
		return events[0].Frame, nil, nil
	}
	buf = s.x.api.buffers.get()
	frames = *buf
	for i := range events {
		frames = append(frames, events[i].Frame...)
	}
	*buf = frames
	return frames, buf, nil
}

// write sends what a client can use at once, and sees it off. An error means that the client is
// gone or does not read.
func (s *stream) write(p []byte) error {
	s.extend()
	if _, err := s.x.Write(p); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil {
		return err
	}
	if s.x.r.ProtoMajor >= 2 {
		// HTTP/2 holds a deadline against a stream that is merely quiet.
		s.deadline = time.Time{}
		_ = s.control.SetWriteDeadline(s.deadline)
	}
	return nil
}

// extend gives the next write its time: at least half of writeTimeout, so that a busy stream moves
// its deadline seldom. The end of the answer is a write too.
func (s *stream) extend() {
	now := time.Now()
	if s.deadline.Sub(now) < writeTimeout/2 {
		s.deadline = now.Add(writeTimeout)
		_ = s.control.SetWriteDeadline(s.deadline)
	}
}

// spread gives a lifetime between 13/15 and 15/15 of the longest.
func spread(longest time.Duration) time.Duration {
	return longest - rand.N(longest*2/15+1)
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, other := range others {
		if other.Before(first) {
			first = other
		}
	}
	return first
}
