package lease_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams/streamstest"
)

// cutOff is a bucket whose watches miss every change once cut is set, as on a server that is cut
// off from the others. They still load the bucket's content.
type cutOff struct {
	jetstream.KeyValue
	cut *atomic.Bool
}

type cutOffWatcher struct {
	jetstream.KeyWatcher
	forwarded chan jetstream.KeyValueEntry
}

func (w cutOffWatcher) Updates() <-chan jetstream.KeyValueEntry { return w.forwarded }

func (c cutOff) WatchAll(ctx context.Context, options ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	watcher, err := c.KeyValue.WatchAll(ctx, options...)
	if err != nil {
		return nil, err
	}
	forwarded := make(chan jetstream.KeyValueEntry, 1000)
	go func() {
		loaded := false
		for entry := range watcher.Updates() {
			if !loaded || !c.cut.Load() {
				forwarded <- entry
			}
			loaded = loaded || entry == nil
		}
		close(forwarded)
	}()
	return cutOffWatcher{watcher, forwarded}, nil
}

// recovery is how long a group may be without a holder after a failure has ended. On an idle
// machine it takes 15 s.
const recovery = 5 * time.Minute

// TestMissedByTheWatch tries changes of keys that the watch misses. Regression: after a broker had
// been cut off, no replica held a group until all were restarted. The keys had been removed, the
// watch had missed that, and each replica tried to write over revisions that no longer existed.
func TestMissedByTheWatch(t *testing.T) {
	t.Parallel()
	t.Run("deleted keys", func(t *testing.T) {
		t.Parallel()
		bucket := leases(t)
		keys := []string{"replica.z"}
		for group := range groups {
			keys = append(keys, fmt.Sprint("group.", group))
		}
		for _, key := range keys {
			if _, err := bucket.Create(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
				t.Fatal(err)
			}
		}
		kv, cut := bucket.KeyValue, &atomic.Bool{}
		bucket.KeyValue = cutOff{kv, cut}
		a := start(t, bucket, "a", nil)
		streamstest.EventuallyWithin(t, recovery, "the other replica is known",
			func() bool { return a.keeper.Share() != nil })
		cut.Store(true)
		for _, key := range keys {
			streamstest.Must(t, kv.Delete(t.Context(), key))
		}
		began := time.Now()
		streamstest.EventuallyWithin(t, recovery, "all groups", func() bool { return a.count() == groups })
		t.Logf("all groups after %s", time.Since(began))
	})
	t.Run("keys written by another replica", func(t *testing.T) {
		t.Parallel()
		bucket := leases(t)
		kv, cut := bucket.KeyValue, &atomic.Bool{}
		bucket.KeyValue = cutOff{kv, cut}
		a := start(t, bucket, "a", nil)
		streamstest.EventuallyWithin(t, recovery, "all groups", func() bool { return a.count() == groups })
		cut.Store(true)
		for group := range groups {
			key := fmt.Sprint("group.", group)
			if _, err := kv.Put(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
				t.Fatal(err)
			}
			streamstest.Must(t, kv.Delete(t.Context(), key))
		}
		streamstest.EventuallyWithin(t, recovery, "all groups are lost", func() bool { return a.lost() == groups })
		began := time.Now()
		streamstest.EventuallyWithin(t, recovery, "all groups again", func() bool { return a.count() == groups })
		t.Logf("all groups after %s", time.Since(began))
	})
}

// TestMissedByTheBroker tries expired keys that the broker does not remove. Regression: no replica
// acquired the groups of such keys.
func TestMissedByTheBroker(t *testing.T) {
	t.Parallel()
	store := leases(t)
	js, err := jetstream.New(store.cloud)
	streamstest.Must(t, err)
	if store.KeyValue, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "timeless"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"replica.z", "group.0", "group.1", "group.2", "group.3"} {
		if _, err := store.Create(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	a := start(t, store, "a", nil)
	streamstest.EventuallyWithin(t, recovery, "all groups", func() bool { return a.count() == groups })
	const least = 3 * time.Second // in which its holder may count it as held
	if took := time.Since(began); took < least {
		t.Errorf("a lease was acquired after %s, want at least %s", took, least)
	}
	// A replica that renews its leases keeps them. It would take the replica z for alive at first.
	streamstest.Must(t, store.Delete(t.Context(), "replica.z"))
	b := start(t, store, "b", nil)
	streamstest.EventuallyWithin(t, recovery, "a share each",
		func() bool { return a.count() > 0 && b.count() > 0 && a.count()+b.count() == groups })
	if a.lost()+b.lost() > 0 {
		t.Errorf("%d leases were lost, want 0", a.lost()+b.lost())
	}
}
