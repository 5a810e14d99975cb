package replicas_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/replicas"
	"hubcloud/streams/streamstest"
)

// replica is a serving process with connections of its own, which applies events when the test
// calls apply.
type replica struct {
	conns *streams.Conns
	stop  func()

	mu      sync.Mutex
	applied uint64
	changed chan struct{}
}

func startReplica(t *testing.T, broker *streamstest.Broker, id string) *replica {
	t.Helper()
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	r := &replica{conns: conns, changed: make(chan struct{})}
	barrier := replicas.NewBarrier(conns, id, streamstest.Logger())
	r.stop = streamstest.Run(t, "replica "+id, func(ctx context.Context) error {
		err := barrier.Serve(ctx, r.awaitApplied)
		if errors.Is(err, nats.ErrConnectionClosed) { // as if it had been killed
			<-ctx.Done()
			return nil
		}
		return err
	})
	streamstest.Eventually(t, "the heartbeat is stored", func() bool {
		_, err := buckets.Replicas.Get(t.Context(), id)
		return err == nil
	})
	return r
}

func (r *replica) apply(seq uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.applied = seq
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *replica) awaitApplied(ctx context.Context, seq uint64) error {
	for {
		r.mu.Lock()
		applied, changed := r.applied, r.changed
		r.mu.Unlock()
		if applied >= seq {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// newWaiter returns the barrier of a caller that serves nothing itself, such as a command.
func newWaiter(t *testing.T, broker *streamstest.Broker) *replicas.Barrier {
	t.Helper()
	conns := broker.Connect(t)
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	return replicas.NewBarrier(conns, "", streamstest.Logger())
}

func TestBarrierWaitsForEveryReplica(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := newWaiter(t, broker)
	if err := barrier.Wait(t.Context(), 7); err != nil {
		t.Fatalf("Wait without replicas: %v; want nil", err)
	}
	a, b := startReplica(t, broker, "a"), startReplica(t, broker, "b")
	a.apply(7)
	b.apply(6)

	// A replica that is alive and behind is waited for until ctx ends.
	short, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	if err := barrier.Wait(short, 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Wait with a replica behind: %v; want %v", err, context.DeadlineExceeded)
	}
	done := make(chan error, 1)
	go func() { done <- barrier.Wait(t.Context(), 7) }()
	b.apply(8)
	if err := <-done; err != nil {
		t.Fatalf("Wait after the replica applied the event: %v; want nil", err)
	}
}

func TestBarrierIgnoresStoppedReplica(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := newWaiter(t, broker)
	startReplica(t, broker, "a").stop()
	fastest := time.Hour
	for range 5 { // a busy machine can make one try slow
		start := time.Now()
		streamstest.Must(t, barrier.Wait(t.Context(), 99))
		fastest = min(fastest, time.Since(start))
	}
	if fastest > 500*time.Millisecond {
		t.Errorf("Wait took %v for a stopped replica; want less than 500ms", fastest)
	}
}

// A killed replica leaves its heartbeat behind. Wait must not wait until the heartbeat expires.
func TestBarrierGivesUpOnKilledReplica(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := newWaiter(t, broker)
	killed, alive := startReplica(t, broker, "killed"), startReplica(t, broker, "alive")
	alive.apply(5)
	killed.conns.Close() // as the kernel does for a killed process
	start := time.Now()
	streamstest.Must(t, barrier.Wait(t.Context(), 5))
	if took := time.Since(start); took > 6*time.Second {
		t.Errorf("Wait took %v for a killed replica; want less than 6s", took)
	}
	// The same replica, started again, is waited for again.
	again := startReplica(t, broker, "killed")
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := barrier.Wait(short, 5); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait for the restarted replica: %v; want %v", err, context.DeadlineExceeded)
	}
	again.apply(5)
	if err := barrier.Wait(t.Context(), 5); err != nil {
		t.Error(err)
	}
}

// A replica that reconnects is alive and still accepts API keys, so Wait must wait for it.
func TestBarrierWaitsForReconnectingReplica(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := newWaiter(t, broker)
	r := startReplica(t, broker, "a")
	done := make(chan error, 1)
	waits := func() bool {
		streamstest.Must(t, r.conns.Cloud.ForceReconnect())
		began := time.Now()
		go func() { done <- barrier.Wait(t.Context(), 5) }()
		select {
		case err := <-done:
			if took := time.Since(began); err != nil || took < silence {
				t.Fatalf("Wait returned %v after %v, before the replica applied the event", err, took)
			}
			return false
		case <-time.After(2 * time.Second):
			return true
		}
	}
	// A busy machine can take longer to reconnect than a replica may be silent.
	for tries := 1; !waits(); tries++ {
		if tries == 5 {
			t.Fatal("Wait returned five times before the replica applied the event")
		}
		streamstest.Eventually(t, "the replica is back", r.conns.Cloud.IsConnected)
	}
	r.apply(5)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// silence is how long a replica may leave requests without a reply before Wait counts it as gone.
const silence = 1200 * time.Millisecond

// The replica with the broker inside counted as gone when it had no processor for a second: a key
// was said to be revoked that it still accepted.
func TestBarrierWaitsForEmbedded(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := newWaiter(t, broker)
	conns := broker.Connect(t)
	slow := make(chan struct{})
	embedded := replicas.NewBarrier(conns, replicas.Embedded, streamstest.Logger())
	streamstest.Run(t, "replica", func(ctx context.Context) error {
		return embedded.Serve(ctx, func(context.Context, uint64) error {
			<-slow // not even the time limit of the request is noticed
			return nil
		})
	})
	streamstest.Eventually(t, "the replica serves", func() bool {
		_, err := conns.Cloud.Request(
			streams.BarrierSubject(replicas.Embedded), nil, 100*time.Millisecond,
		)
		return !errors.Is(err, nats.ErrNoResponders)
	})
	done := make(chan error, 1)
	go func() { done <- barrier.Wait(t.Context(), 5) }()
	select {
	case err := <-done:
		t.Fatalf("Wait returned %v before the replica applied the event", err)
	case <-time.After(3 * time.Second):
	}
	close(slow)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBarrierRejectsInvalidID(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	for _, id := range []string{"", "a.b", "*", ">", "a b"} {
		barrier := replicas.NewBarrier(conns, id, streamstest.Logger())
		if err := barrier.Serve(t.Context(), nil); err == nil {
			t.Errorf("Serve with id %q: nil; want an error", id)
		}
	}
}
