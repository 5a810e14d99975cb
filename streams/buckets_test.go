package streams_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// TestOpenBucketsAgain checks that opening the buckets a second time keeps their content, and that
// every bucket keeps one value a key.
func TestOpenBucketsAgain(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	first, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Presence.Put(t.Context(), string(hub), []byte("1")); err != nil {
		t.Fatal(err)
	}
	second, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := second.Presence.Get(t.Context(), string(hub))
	if err != nil || string(entry.Value()) != "1" {
		t.Errorf("value after the second open: got %v, error %v, want 1", entry, err)
	}
	for _, kv := range []jetstream.KeyValue{
		second.Presence, second.Checkpoints, second.Leases, second.Replicas, second.Installation,
	} {
		status, err := kv.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := status.History(); got != 1 {
			t.Errorf("history of bucket %s: got %d, want 1", kv.Bucket(), got)
		}
	}
}

// TestOpenIncompatibleBucket checks that a bucket with other properties is ErrIncompatible and
// stays unchanged.
func TestOpenIncompatibleBucket(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	kv, err := newJetStream(t, conns.Cloud).CreateKeyValue(
		t.Context(),
		jetstream.KeyValueConfig{Bucket: "checkpoints", History: 5, Storage: jetstream.MemoryStorage},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	_, err = streams.OpenBuckets(t.Context(), conns, 1)
	if !errors.Is(err, streams.ErrIncompatible) {
		t.Fatalf("OpenBuckets: got %v, want ErrIncompatible", err)
	}
	for _, part := range []string{
		"checkpoints", "max_msgs_per_subject is 5, want 1", "storage is memory, want file",
	} {
		if !strings.Contains(strings.ToLower(err.Error()), part) {
			t.Errorf("error: got %v, want it to contain %q", err, part)
		}
	}
	if entry, err := kv.Get(t.Context(), "k"); err != nil || string(entry.Value()) != "v" {
		t.Errorf("value after the failed open: got %v, error %v, want v", entry, err)
	}
}

func idempotencyTTL(t *testing.T, b *streams.Buckets) time.Duration {
	t.Helper()
	status, err := b.Idempotency.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return status.TTL()
}

// TestIdempotencyWindow checks that a window applies to the existing bucket and its entries, and
// that OpenBuckets, which does not know the setting, keeps it.
func TestIdempotencyWindow(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	b, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := idempotencyTTL(t, b); got != streams.DefaultIdempotencyWindow {
		t.Errorf("window of a new bucket: got %v, want %v", got, streams.DefaultIdempotencyWindow)
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
			t.Errorf("window: got %v, want %v", got, window)
		}
		status, err := again.Leases.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := status.TTL(); got != streams.LeaseTTL {
			t.Errorf("TTL of leases: got %v, want %v", got, streams.LeaseTTL)
		}
	}
	streamstest.Eventually(t, "the key has expired", func() bool {
		_, err := b.Idempotency.Get(t.Context(), "k")
		return errors.Is(err, jetstream.ErrKeyNotFound)
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.SetIdempotencyWindow(ctx, conns, time.Hour); err == nil {
		t.Error("SetIdempotencyWindow with a cancelled context: got nil, want an error")
	}
}
