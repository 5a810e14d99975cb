package response

import (
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

const (
	// WriteTimeout is how long a client may take to accept one write.
	WriteTimeout = 10 * time.Second
	// BatchBytes is about the most bytes of events that a stream should send at once. It bounds
	// what a client that stopped reading can hold in memory.
	BatchBytes = 32 << 10
	// sendBuffer is the size of the kernel's send buffer of a stream's connection. The kernel's own
	// choice can grow to megabytes for a reader that stalls.
	sendBuffer = 2 * BatchBytes
)

// Values of header fields, shared by all streams. no-transform and X-Accel-Buffering keep proxies
// from buffering events.
var (
	contentType  = []string{"text/event-stream"}
	cacheControl = []string{"no-cache, no-transform"}
	noBuffering  = []string{"no"}
)

// IsStream reports whether an answer with the header is a stream.
func IsStream(header http.Header) bool { return slices.Equal(header["Content-Type"], contentType) }

// StreamConfig holds the durations of a stream. Both must be positive. NewStream is called for each response
// and does not check them: they come from a configuration that has defaults and a Validate.
type StreamConfig struct {
	// Lifetime is the longest that a stream lasts. Each stream ends between 13/15 and 15/15 of
	// Lifetime, so that clients do not reconnect all at once.
	Lifetime time.Duration
	// Keepalive is the time between two keepalive comments.
	Keepalive time.Duration
}

// Stream is one response of Server-Sent Events. It is used by one goroutine.
type Stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// multiplexed reports that other requests share the connection, as they do over HTTP/2.
	multiplexed bool
	// deadline is the connection's write deadline, zero for none.
	deadline time.Time

	expires       time.Time
	nextKeepalive time.Time
	keepalive     time.Duration
}

// NewStream returns the stream of a response. The stream's lifetime begins now. NewStream sets no header field
// and writes nothing, so that the caller can still answer with an error.
//
// If w, or a ResponseWriter that it wraps, has a method SetSendBuffer(bytes int), Begin uses the
// method to bound the connection's send buffer.
func NewStream(w http.ResponseWriter, r *http.Request, cfg StreamConfig) Stream {
	now := time.Now()
	return Stream{
		w:             w,
		control:       http.NewResponseController(w),
		multiplexed:   r.ProtoMajor >= 2,
		expires:       now.Add(spread(cfg.Lifetime)),
		nextKeepalive: now.Add(cfg.Keepalive),
		keepalive:     cfg.Keepalive,
	}
}

// Begin sets the response's header fields. The first Send writes them.
func (s *Stream) Begin() {
	header := s.w.Header()
	header["Content-Type"] = contentType
	header["Cache-Control"] = cacheControl
	header["X-Accel-Buffering"] = noBuffering
	if !s.multiplexed {
		setSendBuffer(s.w)
	}
}

// Send writes whole frames and flushes them. An error means that the client is gone or does not
// read.
func (s *Stream) Send(frames []byte) error {
	s.ExtendDeadline()
	if _, err := s.w.Write(frames); err != nil {
		return err
	}
	if err := s.control.Flush(); err != nil {
		return err
	}
	if s.multiplexed {
		// Over HTTP/2 a passed deadline resets the stream, even if nothing is being written.
		s.deadline = time.Time{}
		// After an error the connection is closed, and the next write fails.
		_ = s.control.SetWriteDeadline(s.deadline)
	}
	return nil
}

// ExtendDeadline leaves the next write at least half of WriteTimeout; that way a busy stream seldom
// moves its deadline. It must be called before the handler returns: the end of the response is a
// write too.
func (s *Stream) ExtendDeadline() {
	now := time.Now()
	if s.deadline.Sub(now) < WriteTimeout/2 {
		s.deadline = now.Add(WriteTimeout)
		// After an error the connection is closed, and the next write fails.
		_ = s.control.SetWriteDeadline(s.deadline)
	}
}

// Expired reports whether the stream's lifetime is over.
func (s *Stream) Expired(now time.Time) bool { return !now.Before(s.expires) }

// TakeKeepalive reports whether a keepalive comment is due; if so, it counts the comment as sent
// and schedules the next one. Comments that a stalled process missed are skipped.
func (s *Stream) TakeKeepalive(now time.Time) bool {
	if now.Before(s.nextKeepalive) {
		return false
	}
	if s.nextKeepalive = s.nextKeepalive.Add(s.keepalive); now.After(s.nextKeepalive) {
		s.nextKeepalive = now.Add(s.keepalive)
	}
	return true
}

// NextWake returns when Expired or TakeKeepalive will return true next.
func (s *Stream) NextWake() time.Time {
	if s.nextKeepalive.Before(s.expires) {
		return s.nextKeepalive
	}
	return s.expires
}

// spread returns a random duration between 13/15 and 15/15 of longest.
func spread(longest time.Duration) time.Duration { return longest - rand.N(longest*2/15+1) }

// setSendBuffer bounds the send buffer of the connection below w, if w knows its connection.
func setSendBuffer(w http.ResponseWriter) {
	for {
		switch t := w.(type) {
		case interface{ SetSendBuffer(bytes int) }:
			t.SetSendBuffer(sendBuffer)
			return
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return
		}
	}
}
