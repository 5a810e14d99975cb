package streams_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// TestOpenIncompatibleBucket checks that a bucket with other properties is ErrIncompatible and
// stays unchanged.
func TestOpenIncompatibleBucket(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	kv, err := streamstest.JetStream(t, conns.Cloud).CreateKeyValue(
		t.Context(),
		jetstream.KeyValueConfig{Bucket: "checkpoints", History: 5, Storage: jetstream.MemoryStorage},
	)
	streamstest.Must(t, err)
	if _, err := kv.Put(t.Context(), "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	_, err = streams.OpenBuckets(t.Context(), conns, 1)
	if text := strings.ToLower(fmt.Sprint(err)); !errors.Is(err, streams.ErrIncompatible) ||
		!strings.Contains(text, "checkpoints") ||
		!strings.Contains(text, "max_msgs_per_subject is 5, want 1") ||
		!strings.Contains(text, "storage is memory, want file") {
		t.Errorf("OpenBuckets: got %v, want ErrIncompatible with both differences", err)
	}
	if entry, err := kv.Get(t.Context(), "k"); err != nil || string(entry.Value()) != "v" {
		t.Errorf("value after the failed open: got %v, error %v, want v", entry, err)
	}
}

func ttl(t *testing.T, bucket jetstream.KeyValue) time.Duration {
	t.Helper()
	status, err := bucket.Status(t.Context())
	streamstest.Must(t, err)
	return status.TTL()
}

// TestIdempotencyWindow checks that a window applies to the existing bucket and its entries, and
// that OpenBuckets, which does not know the setting, keeps it.
func TestIdempotencyWindow(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	b, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	if got := ttl(t, b.Idempotency); got != streams.DefaultIdempotencyWindow {
		t.Errorf("window of a new bucket: got %v, want %v", got, streams.DefaultIdempotencyWindow)
	}
	if _, err := b.Idempotency.Create(t.Context(), "k", []byte("1")); err != nil {
		t.Fatal(err)
	}
	for _, window := range []time.Duration{
		time.Minute, time.Hour, 48 * time.Hour, 48 * time.Hour, time.Second,
	} {
		streamstest.Must(t, b.SetIdempotencyWindow(t.Context(), conns, window))
		again, err := streams.OpenBuckets(t.Context(), conns, 1)
		streamstest.Must(t, err)
		if got := ttl(t, again.Idempotency); got != window {
			t.Errorf("window: got %v, want %v", got, window)
		}
		if got := ttl(t, again.Leases); got != streams.LeaseTTL {
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
