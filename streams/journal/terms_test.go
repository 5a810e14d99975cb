package journal

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// Two replicas that both believe that they hold the lease cannot both store: every append that was
// confirmed is in the log once, and nothing else but appends with an unknown outcome.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	first, second := start(t, broker, nil), start(t, broker, nil)
	first.serve(t, always)
	hub := hubID(1)
	var wg sync.WaitGroup
	var confirmed, unknown atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	for _, r := range []*replica{first, second} {
		for range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, err := r.appendCommand(t.Context(), hub)
					switch {
					case err == nil:
						confirmed.Add(1)
					case errors.Is(err, jsapi.ErrOutcomeUnknown):
						unknown.Add(1)
					default:
						t.Errorf("Append: %v", err)
						return
					}
				}
			})
		}
	}
	for range 3 {
		stop := second.serve(t, always)
		before := confirmed.Load()
		streamstest.Eventually(t, "appends go on", func() bool {
			return confirmed.Load() > before+20
		})
		stop()
	}
	cancel()
	wg.Wait()
	streamstest.Must(t, first.Sync(t.Context(), hub))
	tip, _ := first.Tip(hub)
	stored := int64(tip.Seq)
	if stored < confirmed.Load() || stored > confirmed.Load()+unknown.Load() {
		t.Errorf(
			"the log has %d records, want %d confirmed and at most %d of unknown outcome", stored,
			confirmed.Load(), unknown.Load(),
		)
	}
	first.check(t, hub, int(stored))
	second.check(t, hub, int(stored))
}

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
