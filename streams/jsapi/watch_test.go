package jsapi_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// A watch that ended while the broker was away waited five seconds for an answer of the broker, and
// delayed the stop of the service.
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
		ended <- jsapi.Watcher{
			Conn: conns.Cloud, KV: buckets.Checkpoints, Logger: slog.New(slog.DiscardHandler),
		}.Watch(ctx, func(u jsapi.Update) {
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
		t.Errorf("Watch: %v, want context.Canceled", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Watch ended %v after its context, want at most 4s", took)
	}
}

// stalledBucket is a bucket whose first watch delivers the entries that exist when it begins, and
// no later ones.
type stalledBucket struct {
	jetstream.KeyValue
	watches atomic.Int32
}

type stalledWatcher struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (w stalledWatcher) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

func (b *stalledBucket) WatchAll(
	ctx context.Context, options ...jetstream.WatchOpt,
) (jetstream.KeyWatcher, error) {
	watcher, err := b.KeyValue.WatchAll(ctx, options...)
	if err != nil || b.watches.Add(1) > 1 {
		return watcher, err
	}
	updates := make(chan jetstream.KeyValueEntry, 100)
	go func() {
		loaded := false
		for entry := range watcher.Updates() {
			if !loaded {
				updates <- entry
			}
			loaded = loaded || entry == nil
		}
		close(updates)
	}()
	return stalledWatcher{watcher, updates}, nil
}

// A watch of a server that was cut off stopped delivering without an error, so that hubs that had
// reconnected were still shown as offline.
func TestStalledWatchRestarts(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	loaded, keys, ended := make(chan struct{}, 10), make(chan string, 10), make(chan error, 1)
	kv := &stalledBucket{KeyValue: buckets.Checkpoints}
	go func() {
		ended <- jsapi.Watcher{
			Conn: conns.Cloud, KV: kv, Logger: slog.New(slog.DiscardHandler),
		}.Watch(ctx, func(u jsapi.Update) {
			switch {
			case u.Loaded:
				loaded <- struct{}{}
			case u.Entry != nil:
				keys <- u.Entry.Key()
			}
		})
	}()
	<-loaded
	if _, err := buckets.Checkpoints.Put(ctx, "one", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case key := <-keys:
		if key != "one" {
			t.Errorf("update of key %s, want one", key)
		}
		t.Logf("update after %s", time.Since(began))
	case <-time.After(time.Minute):
		t.Error("no update after a minute, want key one")
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("Watch: %v, want context.Canceled", err)
	}
}
