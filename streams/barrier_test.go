package streams_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// replica is one process that serves: it has connections of its own, and applies events when the
// test says so.
type replica struct {
	id      string
	conns   *streams.Conns
	stop    context.CancelFunc
	stopped chan error

	mu      sync.Mutex
	applied uint64
	changed chan struct{}
}

func startReplica(t *testing.T, broker *streamstest.Broker, id string) *replica {
	t.Helper()
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{
		id:      id,
		conns:   conns,
		stop:    cancel,
		stopped: make(chan error, 1),
		changed: make(chan struct{}),
	}
	go func() {
		r.stopped <- streams.NewBarrier(conns, id, slog.New(slog.DiscardHandler)).Serve(ctx, r.awaitApplied)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.stopped
	})
	eventually(t, func() bool {
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

// waiter is a caller that serves nothing itself, such as a command line.
func waiter(t *testing.T, broker *streamstest.Broker) *streams.Barrier {
	t.Helper()
	conns := broker.Connect(t)
	if _, err := streams.OpenBuckets(t.Context(), conns, 1); err != nil {
		t.Fatal(err)
	}
	return streams.NewBarrier(conns, "", slog.New(slog.DiscardHandler))
}

func eventually(t *testing.T, what func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !what(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestBarrierWaitsForEveryReplica(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := waiter(t, broker)
	if err := barrier.Wait(t.Context(), 7); err != nil {
		t.Fatalf("without replicas: %v", err)
	}
	a, b := startReplica(t, broker, "a"), startReplica(t, broker, "b")
	a.apply(7)
	b.apply(6)

	// One that is alive and behind is waited for, for as long as the caller has time.
	short, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
	defer cancel()
	if err := barrier.Wait(short, 7); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("with a replica behind: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- barrier.Wait(t.Context(), 7) }()
	b.apply(8)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestBarrierWaitsNoMoreForAReplicaThatStopped(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := waiter(t, broker)
	r := startReplica(t, broker, "a")
	r.stop()
	err := <-r.stopped
	r.stopped <- err // for the cleanup
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("serving ended with %v", err)
	}
	start := time.Now()
	if err := barrier.Wait(t.Context(), 99); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 500*time.Millisecond {
		t.Errorf("a replica that took its leave was waited for, %s", took)
	}
}

// A replica that is killed leaves its heartbeat behind. Nobody may wait until that has run out.
func TestBarrierFindsAKilledReplicaGone(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := waiter(t, broker)
	killed, alive := startReplica(t, broker, "killed"), startReplica(t, broker, "alive")
	alive.apply(5)
	killed.conns.Close() // as the kernel does for a process that is no more
	start := time.Now()
	if err := barrier.Wait(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > 6*time.Second {
		t.Errorf("a killed replica was waited for, %s", took)
	}
	// The same replica, started again, is waited for again.
	again := startReplica(t, broker, "killed")
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := barrier.Wait(short, 5); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the restarted replica was not waited for: %v", err)
	}
	again.apply(5)
	if err := barrier.Wait(t.Context(), 5); err != nil {
		t.Error(err)
	}
}

// A replica whose connection breaks for a moment is alive, and still takes keys: it is waited for.
func TestBarrierWaitsForAReplicaThatReconnects(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	barrier := waiter(t, broker)
	r := startReplica(t, broker, "a")
	if err := r.conns.Cloud.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- barrier.Wait(t.Context(), 5) }()
	select {
	case err := <-done:
		t.Fatalf("it was not waited for: %v", err)
	case <-time.After(2 * time.Second):
	}
	r.apply(5)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestBarrierRefusesAnIDThatIsNone(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	for _, id := range []string{"", "a.b", "*", ">", "a b"} {
		if err := streams.NewBarrier(conns, id, slog.New(slog.DiscardHandler)).Serve(t.Context(), nil); err == nil {
			t.Errorf("%q serves", id)
		}
	}
}
