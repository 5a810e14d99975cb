package journal

import (
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// gate is a way to the broker that can be closed for new connections.
type gate struct{ closed atomic.Bool }

// Dial implements nats.CustomDialer.
func (g *gate) Dial(network, address string) (net.Conn, error) {
	if g.closed.Load() {
		return nil, errors.New("closed")
	}
	return net.Dial(network, address)
}

// A writer that lost its lease while the broker was out of reach went on with its commit for 15 s,
// and stayed subscribed at the broker afterwards: half of the appends of other replicas got no
// answer.
func TestWriterEndsWhileTheBrokerIsAway(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	var way gate
	conns := streamstest.NewNetwork(t, broker).Connect(t, nats.SetCustomDialer(&way))
	first, second := startOn(t, conns, 1, nil), start(t, broker, nil)
	var held atomic.Bool
	held.Store(true)
	stop := first.serve(t, held.Load)
	if _, err := first.appendCommand(t.Context(), hubID(1)); err != nil {
		t.Fatal(err)
	}
	way.closed.Store(true)
	streamstest.Must(t, conns.Cloud.ForceReconnect())
	streamstest.Eventually(t, "the connection is lost", conns.Cloud.IsReconnecting)
	appended := make(chan error, 1)
	go func() {
		_, err := first.appendCommand(t.Context(), hubID(1))
		appended <- err
	}()
	streamstest.Eventually(t, "a commit is under way", func() bool {
		return first.IsCommitting(hubID(1), time.Now().Add(time.Hour))
	})
	held.Store(false)
	began := time.Now()
	stop()
	if err := <-appended; !errors.Is(err, jsapi.ErrOutcomeUnknown) {
		t.Errorf("append when the lease was lost: %v, want ErrOutcomeUnknown", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the writer ended %s after its lease, want at once", took)
	}
	way.closed.Store(false)
	streamstest.Eventually(t, "the connection is back", conns.Cloud.IsConnected)
	second.serve(t, always)
	for range 20 {
		if _, err := first.appendCommand(t.Context(), hubID(2)); err != nil {
			t.Fatalf("append by way of the other replica: %v", err)
		}
	}
}

// Times grow although the clock jumps back by an hour, also in the next writer.
func TestClockJumpsBack(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	var offset atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }
	first, second := start(t, broker, now), start(t, broker, now)
	stop := first.serve(t, always)
	hub := hubID(1)
	last, err := first.Append(t.Context(), hub, 0, events(3))
	streamstest.Must(t, err)
	offset.Store(int64(-time.Hour))
	if last, err = first.Append(t.Context(), hub, last, events(3)); err != nil {
		t.Fatal(err)
	}
	stop()
	second.serve(t, always)
	if _, err = second.Append(t.Context(), hub, last, events(3)); err != nil {
		t.Fatal(err)
	}
	first.check(t, hub, 9)
	second.check(t, hub, 9)
}
