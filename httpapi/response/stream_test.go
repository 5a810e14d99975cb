package response_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hubcloud/httpapi/response"
)

// connection is a ResponseWriter that records deadlines and the size of its send buffer.
type connection struct {
	*httptest.ResponseRecorder
	deadlines  []time.Time
	sendBuffer int
	err        error
}

func (c *connection) SetSendBuffer(bytes int) { c.sendBuffer = bytes }

func (c *connection) SetWriteDeadline(deadline time.Time) error {
	c.deadlines = append(c.deadlines, deadline)
	return nil
}

func (c *connection) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	return c.ResponseRecorder.Write(p)
}

// wrapper is what middleware puts around a ResponseWriter.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func newConnection() *connection { return &connection{ResponseRecorder: httptest.NewRecorder()} }

func newRequest(protocol int) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	r.ProtoMajor = protocol
	return r
}

var config = response.StreamConfig{Lifetime: 15 * time.Minute, Keepalive: 30 * time.Second}

func TestBeginBoundsSendBuffer(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		protocol int
		want     int
	}{
		{"HTTP/1.1", 1, 2 * response.BatchBytes},
		{"HTTP/2, whose connection other requests share", 2, 0},
	} {
		c := newConnection()
		s := response.NewStream(wrapper{c}, newRequest(tt.protocol), config)
		if s.Begin(); c.sendBuffer != tt.want {
			t.Errorf("%s: send buffer is %d bytes, want %d", tt.name, c.sendBuffer, tt.want)
		}
		if got := c.Header().Get("Content-Type"); got != "text/event-stream" {
			t.Errorf("%s: got Content-Type %q, want text/event-stream", tt.name, got)
		}
	}
}

// A busy stream moves its deadline only once half of WriteTimeout has passed; over HTTP/2 a stream
// that writes nothing has none.
func TestSendDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		for _, tt := range []struct {
			name     string
			protocol int
			want     []time.Time
		}{
			{"HTTP/1.1", 1, []time.Time{began.Add(response.WriteTimeout)}},
			{"HTTP/2", 2, []time.Time{began.Add(response.WriteTimeout), {}, began.Add(response.WriteTimeout), {}}},
		} {
			c := newConnection()
			s := response.NewStream(c, newRequest(tt.protocol), config)
			for range 2 {
				if err := s.Send([]byte("id: 1\n\n")); err != nil {
					t.Fatalf("%s: Send: got %v, want nil", tt.name, err)
				}
			}
			if len(c.deadlines) != len(tt.want) {
				t.Fatalf("%s: deadlines %v, want %v", tt.name, c.deadlines, tt.want)
			}
			for i := range tt.want {
				if !c.deadlines[i].Equal(tt.want[i]) {
					t.Errorf(
						"%s: deadline %d is %v, want %v", tt.name, i, c.deadlines[i], tt.want[i],
					)
				}
			}
			if got := c.Body.String(); got != strings.Repeat("id: 1\n\n", 2) || !c.Flushed {
				t.Errorf(
					"%s: got %q, flushed %v, want two frames, flushed", tt.name, got, c.Flushed,
				)
			}
		}
	})
}

func TestSendReportsAClientThatIsGone(t *testing.T) {
	t.Parallel()
	c := newConnection()
	c.err = errors.New("broken pipe")
	s := response.NewStream(c, newRequest(1), config)
	if err := s.Send([]byte("id: 1\n\n")); !errors.Is(err, c.err) {
		t.Errorf("Send returned %v, want %v", err, c.err)
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := response.NewStream(newConnection(), newRequest(1), config)
	if s.TakeKeepalive(now) {
		t.Error("got a keepalive at once, want it later")
	}
	due := s.NextWake()
	if got := due.Sub(now); got < config.Keepalive || got > 2*config.Keepalive {
		t.Errorf("NextWake is in %v, want about %v", got, config.Keepalive)
	}
	if !s.TakeKeepalive(due) || s.TakeKeepalive(due) {
		t.Error("want exactly one keepalive at NextWake")
	}
	if got := s.NextWake(); !got.Equal(due.Add(config.Keepalive)) {
		t.Errorf("the second keepalive is due at %v, want %v", got, due.Add(config.Keepalive))
	}
	late := due.Add(10 * config.Keepalive)
	if !s.TakeKeepalive(late) || !s.NextWake().Equal(late.Add(config.Keepalive)) {
		t.Errorf(
			"after a stall the next keepalive is at %v, want %v", s.NextWake(),
			late.Add(config.Keepalive),
		)
	}
	if s.Expired(now.Add(config.Lifetime * 12 / 15)) {
		t.Error("got expired before 13/15 of the lifetime, want later")
	}
	if !s.Expired(now.Add(config.Lifetime + time.Second)) {
		t.Error("got not expired after the lifetime, want expired")
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	frames := response.AppendKeepalive(nil)
	frames = response.AppendLastEventID(frames, "c7")
	frames = response.AppendEvent(frames, "hub.portal_now", []byte(`{}`))
	const want = ": keepalive\nid: c7\n\nevent: hub.portal_now\ndata: {}\n\n"
	if string(frames) != want {
		t.Errorf("frames are %q, want %q", frames, want)
	}
}
