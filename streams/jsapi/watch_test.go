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

// A watch that ended while the broker was away waited five seconds for the broker to say so, and a
// service that stopped then, twice that.
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
			Conn: conns.Cloud, KV: buckets.Ledger, Logger: slog.New(slog.DiscardHandler),
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
		t.Errorf("ended with %v", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("took %v", took)
	}
}

// deaf is a bucket whose first watch gives what is there when it begins, and nothing of what
// happens later.
type deaf struct {
	jetstream.KeyValue
	watches atomic.Int32
}

type deafWatcher struct {
	jetstream.KeyWatcher
	heard chan jetstream.KeyValueEntry
}

func (w deafWatcher) Updates() <-chan jetstream.KeyValueEntry { return w.heard }

func (d *deaf) WatchAll(
	ctx context.Context, options ...jetstream.WatchOpt,
) (jetstream.KeyWatcher, error) {
	watcher, err := d.KeyValue.WatchAll(ctx, options...)
	if err != nil || d.watches.Add(1) > 1 {
		return watcher, err
	}
	heard := make(chan jetstream.KeyValueEntry, 100)
	go func() {
		loaded := false
		for entry := range watcher.Updates() {
			if !loaded {
				heard <- entry
			}
			loaded = loaded || entry == nil
		}
		close(heard)
	}()
	return deafWatcher{watcher, heard}, nil
}

// A watch on a server that is cut off says nothing more, and neither did what followed it: hubs
// were offline that had come back.
func TestWatchThatStandsStill(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	loaded, heard, ended := make(chan struct{}, 10), make(chan string, 10), make(chan error, 1)
	kv := &deaf{KeyValue: buckets.Ledger}
	go func() {
		ended <- jsapi.Watcher{
			Conn: conns.Cloud, KV: kv, Logger: slog.New(slog.DiscardHandler),
		}.Watch(ctx, func(u jsapi.Update) {
			switch {
			case u.Loaded:
				loaded <- struct{}{}
			case u.Entry != nil:
				heard <- u.Entry.Key()
			}
		})
	}()
	<-loaded
	if _, err := buckets.Ledger.Put(ctx, "one", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	select {
	case key := <-heard:
		if key != "one" {
			t.Errorf("heard of %s", key)
		}
		t.Logf("heard after %s", time.Since(began))
	case <-time.After(time.Minute):
		t.Error("the watch stands still")
	}
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("ended with %v", err)
	}
}
