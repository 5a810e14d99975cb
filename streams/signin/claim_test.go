package signin_test

import (
	"bytes"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/signin"
	"hubcloud/streams/streamstest"
)

// cutter is a broker whose connections break once a write to a bucket has reached it, so that its
// answer is lost.
type cutter struct {
	*streamstest.Broker
	armed atomic.Bool
	cuts  atomic.Int32
}

func (c *cutter) InProcessConn() (net.Conn, error) {
	conn, err := c.Broker.InProcessConn()
	return &cutConn{Conn: conn, cutter: c}, err
}

type cutConn struct {
	net.Conn
	cutter *cutter
	deaf   atomic.Bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("PUB $KV.")) && c.cutter.armed.CompareAndSwap(true, false) {
		c.cutter.cuts.Add(1)
		c.deaf.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.deaf.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// A link that was used up while the broker's answer was lost signed nobody in, and neither did the
// second try; a form was taken for one that was sent before, though nothing of it was done.
func TestAnAnswerThatIsLostUsesUpNothing(t *testing.T) {
	t.Parallel()
	broker := &cutter{Broker: streamstest.New(t)}
	conns := broker.Connect(t, nats.InProcessServer(broker))
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	s, now := signin.New(conns.Cloud, buckets.SignIn, nil), time.Now()
	link, err := s.NewLink(
		t.Context(),
		domain.SignInLink{Email: "ann@example.org", CreatedAt: now, ExpiresAt: now.Add(time.Hour)},
	)
	if err != nil {
		t.Fatal(err)
	}
	broker.armed.Store(true)
	if got, err := s.TakeLink(t.Context(), link, now); err != nil ||
		got.Email != "ann@example.org" {
		t.Errorf("the link: %+v, %v", got, err)
	}
	if _, err := s.TakeLink(t.Context(), link, now); !errors.Is(err, noLink) {
		t.Errorf("the link again: %v", err)
	}
	token := begin(t, s, time.Hour)
	broker.armed.Store(true)
	if first, err := s.Once(t.Context(), token, "mark"); !first || err != nil {
		t.Errorf("the form: %v, %v", first, err)
	}
	if first, err := s.Once(t.Context(), token, "mark"); first || err != nil {
		t.Errorf("the form again: %v, %v", first, err)
	}
	if broker.cuts.Load() != 2 {
		t.Errorf("%d answers were lost, wanted 2", broker.cuts.Load())
	}
	if err := s.Unsent(t.Context(), token, "mark"); err != nil {
		t.Fatal(err)
	}
	if first, err := s.Once(t.Context(), token, "mark"); !first || err != nil {
		t.Errorf("the form that was not sent: %v, %v", first, err)
	}
}
