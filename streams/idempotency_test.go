package streams_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

func idempotencyTTL(t *testing.T, b *streams.Buckets) time.Duration {
	t.Helper()
	status, err := b.Idempotency.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.TTL()
}

// The window is a setting: another one applies to the bucket that is there and to what it holds,
// and whoever opens the bucket without knowing the setting (an operator's command does) leaves it
// alone.
func TestIdempotencyWindow(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	b, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := idempotencyTTL(t, b); got != 24*time.Hour {
		t.Errorf("made with %v", got)
	}
	if _, err := b.Idempotency.Create(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	for _, window := range []time.Duration{
		time.Minute, time.Hour, 48 * time.Hour, 48 * time.Hour, time.Second,
	} {
		if err := b.SetIdempotencyWindow(t.Context(), conns, window); err != nil {
			t.Fatal(err)
		}
		again, err := streams.OpenBuckets(t.Context(), conns, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := idempotencyTTL(t, again); got != window {
			t.Errorf("%v, wanted %v", got, window)
		}
		if got, err := again.Leases.Status(t.Context()); err != nil ||
			got.TTL() != streams.LeaseTTL {
			t.Errorf("another bucket has changed: %v, %v", got, err)
		}
	}
	streamstest.Eventually(t, "the key has expired", func() bool {
		_, err := b.Idempotency.Get(t.Context(), "k")
		return errors.Is(err, jetstream.ErrKeyNotFound)
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.SetIdempotencyWindow(ctx, conns, time.Hour); err == nil {
		t.Error("set without asking the broker")
	}
}
