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

// cutter is a broker that loses the answer to the next write to a bucket: once armed, it breaks the
// connection after the write.
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
	broken atomic.Bool
}

func (c *cutConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("PUB $KV.")) && c.cutter.armed.CompareAndSwap(true, false) {
		c.cutter.cuts.Add(1)
		c.broken.Store(true)
	}
	return c.Conn.Write(p)
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.broken.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// When the broker's answer was lost, a link was used up without a sign-in, and a form counted as
// sent although it was not processed.
func TestLostAnswerUsesUpNothing(t *testing.T) {
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
	if got, err := s.UseLink(t.Context(), link, now); err != nil ||
		got.Email != "ann@example.org" {
		t.Errorf("UseLink: got %+v, %v, want the link of ann@example.org", got, err)
	}
	if _, err := s.UseLink(t.Context(), link, now); !errors.Is(err, noLink) {
		t.Errorf("UseLink again: got %v, want ErrSignInLink", err)
	}
	token := begin(t, s, time.Hour)
	broker.armed.Store(true)
	if first, err := s.ClaimForm(t.Context(), token, "mark"); !first || err != nil {
		t.Errorf("send the form: got first %v, %v, want true", first, err)
	}
	if first, err := s.ClaimForm(t.Context(), token, "mark"); first || err != nil {
		t.Errorf("send the form again: got first %v, %v, want false", first, err)
	}
	if broker.cuts.Load() != 2 {
		t.Errorf("%d answers were lost, want 2", broker.cuts.Load())
	}
	if err := s.ReleaseForm(t.Context(), token, "mark"); err != nil {
		t.Fatal(err)
	}
	if first, err := s.ClaimForm(t.Context(), token, "mark"); !first || err != nil {
		t.Errorf("send the form after ReleaseForm: got first %v, %v, want true", first, err)
	}
}
