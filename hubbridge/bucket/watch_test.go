package bucket_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/hubbridge/bucket"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// A watch that ended while the broker was away waited five seconds for the broker to say so, and a service that stopped then, twice that.
func TestWatchEndsWithoutTheBroker(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	loaded, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- bucket.Watch(ctx, conns.Cloud, buckets.Ledger, func(u bucket.Update) {
			if u.Loaded {
				close(loaded)
			}
		})
	}()
	<-loaded
	lost := conns.Cloud.StatusChanged(nats.RECONNECTING)
	broker.Stop()
	<-lost
	began := time.Now()
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
}
