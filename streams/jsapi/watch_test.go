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

// watch watches a bucket until the test ends. Once it has loaded it returns the keys of later
// updates.
func watch(t *testing.T, nc *nats.Conn, kv jetstream.KeyValue) (<-chan string, func()) {
	t.Helper()
	loaded, keys := make(chan struct{}, 10), make(chan string, 10)
	watcher := jsapi.Watcher{Conn: nc, KV: kv, Logger: slog.New(slog.DiscardHandler)}
	stop := streamstest.Run(t, "watch", func(ctx context.Context) error {
		return watcher.Watch(ctx, func(u jsapi.Update) {
			switch {
			case u.Loaded:
				loaded <- struct{}{}
			case u.Entry != nil:
				keys <- u.Entry.Key()
			}
		})
	})
	<-loaded
	return keys, stop
}

// A watch that ended while the broker was away waited five seconds for an answer of the broker, and
// delayed the stop of the service.
func TestWatchEndsWithoutTheBroker(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	_, stop := watch(t, conns.Cloud, buckets.Checkpoints)
	lost := conns.Cloud.StatusChanged(nats.RECONNECTING)
	broker.Stop()
	<-lost
	began := time.Now()
	stop()
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
	streamstest.Must(t, err)
	keys, _ := watch(t, conns.Cloud, &stalledBucket{KeyValue: buckets.Checkpoints})
	if _, err := buckets.Checkpoints.Put(t.Context(), "one", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	select {
	case key := <-keys:
		if key != "one" {
			t.Errorf("update of key %s, want one", key)
		}
	case <-time.After(time.Minute):
		t.Error("no update after a minute, want key one")
	}
}
