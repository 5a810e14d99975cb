package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/hubbridge/lease"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const shards = 8

// replica is a running Keeper, with the shards that it serves and the causes that ended shards.
type replica struct {
	keeper *lease.Keeper
	stop   context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	serves map[int]bool
	causes []error
}

// holders counts the replicas that serve each shard. The test fails when two serve the same shard.
type holders struct {
	t     *testing.T
	mu    sync.Mutex
	count map[int]int
}

func (s *holders) change(shard, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[shard] += by; s.count[shard] > 1 {
		s.t.Errorf("shard %d has %d holders", shard, s.count[shard])
	}
}

func newKeeper(t *testing.T, bucket store, id string, metrics prometheus.Registerer) *lease.Keeper {
	t.Helper()
	keeper, err := lease.NewKeeper(lease.Config{
		Conn: bucket.cloud, Bucket: bucket.KeyValue, ReplicaID: id, Shards: shards,
		Logger: slog.New(slog.DiscardHandler), Metrics: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	return keeper
}

// start runs a replica until its method end is called or the test ends.
func start(t *testing.T, bucket store, id string, all *holders) *replica {
	return startWith(t, bucket, id, all, nil)
}

func startWith(
	t *testing.T, bucket store, id string, all *holders, metrics prometheus.Registerer,
) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{
		keeper: newKeeper(t, bucket, id, metrics),
		stop:   cancel, ended: make(chan error, 1), serves: map[int]bool{},
	}
	go func() {
		r.ended <- r.keeper.Run(ctx, func(ctx context.Context, shard int, held func() bool) error {
			all.change(shard, 1)
			r.set(shard, true)
			if !held() {
				t.Errorf("shard %d is served while held returns false", shard)
			}
			<-ctx.Done()
			if held() == errors.Is(context.Cause(ctx), lease.ErrLost) {
				t.Errorf(
					"shard %d ended with %v while held is %t", shard, context.Cause(ctx), held(),
				)
			}
			r.set(shard, false)
			all.change(shard, -1)
			r.mu.Lock()
			r.causes = append(r.causes, context.Cause(ctx))
			r.mu.Unlock()
			return nil
		})
	}()
	t.Cleanup(func() { cancel() })
	return r
}

// set records whether the replica serves a shard.
func (r *replica) set(shard int, serves bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if serves {
		r.serves[shard] = true
	} else {
		delete(r.serves, shard)
	}
}

// endings returns the causes that ended shards so far.
func (r *replica) endings() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.causes)
}

// count returns how many shards the replica serves.
func (r *replica) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.serves)
}

// end stops the replica and waits until Run has returned.
func (r *replica) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v, want %v", err, context.Canceled)
		}
	case <-time.After(time.Minute):
		t.Fatal("Run has not returned after a minute")
	}
}

// store is the bucket of leases and its broker.
type store struct {
	jetstream.KeyValue
	cloud  *nats.Conn
	broker *streamstest.Broker
}

// leases returns an empty bucket of leases on a broker of its own.
func leases(t *testing.T) store {
	t.Helper()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	if err != nil {
		t.Fatal(err)
	}
	return store{buckets.Leases, conns.Cloud, broker}
}

func TestAloneHasAll(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	if share := a.keeper.Share(); len(share) != shards {
		t.Errorf("Share = %v, want all %d shards", share, shards)
	}
	a.end(t)
	if a.count() != 0 {
		t.Errorf("%d shards are served after Run, want 0", a.count())
	}
	// Run has released the leases: the next replica need not wait.
	b := start(t, bucket, "b", all)
	streamstest.Eventually(t, "all shards for the next", func() bool { return b.count() == shards })
	b.end(t)
}

func TestSharedAndHandedOver(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	b := start(t, bucket, "b", all)
	streamstest.Eventually(t, "a share each",
		func() bool { return a.count() > 0 && b.count() > 0 && a.count()+b.count() == shards },
	)
	for _, cause := range a.endings() {
		if !errors.Is(cause, lease.ErrHandedOver) {
			t.Errorf("a shard ended with %v, want %v", cause, lease.ErrHandedOver)
		}
	}
	b.end(t)
	streamstest.Eventually(t, "all shards again", func() bool { return a.count() == shards })
	a.end(t)
}

// TestRestartAcquiresItsOwn holds that a replica that was killed and restarts under its id does not
// wait for its own leases to expire.
func TestRestartAcquiresItsOwn(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	for _, key := range []string{"shard.0", "shard.1", "replica.a"} {
		if _, err := bucket.Create(t.Context(), key, []byte(`{"replica":"a"}`)); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	a.end(t)
}

// TestLostLease holds that a replica stops serving a shard whose key another replica has written.
func TestLostLease(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	registry := prometheus.NewPedanticRegistry()
	a := startWith(t, bucket, "a", all, registry)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	wantMetrics(t, registry, shards, 0)
	if _, err := bucket.Put(t.Context(), "shard.3", []byte(`{"replica":"z"}`)); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(
		t, "the shard is not served", func() bool { return a.count() == shards-1 },
	)
	// The other replica does not renew the key: the broker removes it.
	streamstest.EventuallyWithin(
		t, streams.LeaseTTL+time.Minute, "the shard is served again",
		func() bool { return a.count() == shards },
	)
	wantMetrics(t, registry, shards, 1)
	if ends := a.endings(); len(ends) != 1 || !errors.Is(ends[0], lease.ErrLost) {
		t.Errorf("shards ended with %v, want one %v", ends, lease.ErrLost)
	}
	a.end(t)
	telemetrytest.Lint(t, registry)
	wantMetrics(t, registry, 0, 1)
}

// wantMetrics waits until the metrics report the numbers of held and lost leases.
func wantMetrics(t *testing.T, registry *prometheus.Registry, held, lost float64) {
	t.Helper()
	streamstest.Eventually(t, "the metrics", func() bool {
		value := func(name string) float64 {
			return telemetrytest.Value(t, registry, "hubcloud_lease_"+name)
		}
		return value("shards_held") == held && value("lost_total") == lost &&
			value("shards_wanted") == shards
	})
}

// TestServeError holds that an error of serve ends Run: the process must not continue without a
// shard.
func TestServeError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	bucket := leases(t)
	k := newKeeper(t, bucket, "a", nil)
	err := k.Run(t.Context(), func(ctx context.Context, shard int, _ func() bool) error {
		if shard == 2 {
			return broken
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
}

// TestBrokerAway holds that a replica stops serving its shards when the broker is away for longer
// than leases last, and serves them again afterwards.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	bucket.broker.Stop()
	streamstest.EventuallyWithin(
		t, streams.LeaseTTL, "no shard is served", func() bool { return a.count() == 0 },
	)
	bucket.broker.Start(t)
	streamstest.Eventually(t, "all shards again", func() bool { return a.count() == shards })
	a.end(t)
}

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

func (c cutOff) WatchAll(
	ctx context.Context, options ...jetstream.WatchOpt,
) (jetstream.KeyWatcher, error) {
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

// recovery is how long a shard may be without a holder after a failure has ended. On an idle
// machine it takes 15 s.
const recovery = time.Minute

// TestMissedByTheWatch tries changes of keys that the watch misses. Regression: after a broker had
// been cut off, no replica held a shard until all were restarted. The keys had been removed, the
// watch had missed that, and each replica tried to write over revisions that no longer existed.
func TestMissedByTheWatch(t *testing.T) {
	t.Parallel()
	t.Run("deleted keys", func(t *testing.T) {
		t.Parallel()
		bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
		keys := []string{"replica.z"}
		for shard := range shards {
			keys = append(keys, fmt.Sprint("shard.", shard))
		}
		for _, key := range keys {
			if _, err := bucket.Create(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
				t.Fatal(err)
			}
		}
		kv, cut := bucket.KeyValue, &atomic.Bool{}
		bucket.KeyValue = cutOff{kv, cut}
		a := start(t, bucket, "a", all)
		streamstest.EventuallyWithin(
			t, recovery, "the other replica is known",
			func() bool { return a.keeper.Share() != nil },
		)
		cut.Store(true)
		for _, key := range keys {
			if err := kv.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		streamstest.EventuallyWithin(
			t, recovery, "all shards", func() bool { return a.count() == shards },
		)
		t.Logf("all shards after %s", time.Since(began))
		a.end(t)
	})
	t.Run("keys written by another replica", func(t *testing.T) {
		t.Parallel()
		bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
		kv, cut := bucket.KeyValue, &atomic.Bool{}
		bucket.KeyValue = cutOff{kv, cut}
		a := start(t, bucket, "a", all)
		streamstest.EventuallyWithin(
			t, recovery, "all shards", func() bool { return a.count() == shards },
		)
		cut.Store(true)
		for shard := range shards {
			key := fmt.Sprint("shard.", shard)
			if _, err := kv.Put(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
				t.Fatal(err)
			}
			if err := kv.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		streamstest.EventuallyWithin(
			t, recovery, "all shards are lost", func() bool { return a.lost() == shards },
		)
		began := time.Now()
		streamstest.EventuallyWithin(
			t, recovery, "all shards again", func() bool { return a.count() == shards },
		)
		t.Logf("all shards after %s", time.Since(began))
		a.end(t)
	})
}

// TestMissedByTheBroker tries expired keys that the broker does not remove. Regression: no replica
// acquired the shards of such keys.
func TestMissedByTheBroker(t *testing.T) {
	t.Parallel()
	store, all := leases(t), &holders{t: t, count: map[int]int{}}
	js, err := jetstream.New(store.cloud)
	if err != nil {
		t.Fatal(err)
	}
	if store.KeyValue, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{
		Bucket: "timeless",
	}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"replica.z", "shard.0", "shard.1", "shard.2", "shard.3"} {
		if _, err := store.Create(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	a := start(t, store, "a", all)
	streamstest.EventuallyWithin(
		t, recovery, "all shards", func() bool { return a.count() == shards },
	)
	if took := time.Since(began); took < streams.LeaseTTL {
		t.Errorf("a lease was acquired after %s, want at least %s", took, streams.LeaseTTL)
	}
	// A replica that renews its leases keeps them.
	b := start(t, store, "b", all)
	streamstest.EventuallyWithin(
		t, recovery, "a share each",
		func() bool { return a.count() > 0 && b.count() > 0 && a.count()+b.count() == shards },
	)
	if a.lost()+b.lost() > 0 {
		t.Errorf("%d leases were lost, want 0", a.lost()+b.lost())
	}
	b.end(t)
	a.end(t)
}

// lost returns the number of leases that the replica has lost.
func (r *replica) lost() int {
	lost := 0
	for _, cause := range r.endings() {
		if errors.Is(cause, lease.ErrLost) {
			lost++
		}
	}
	return lost
}
