package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// replica is a Keeper that runs, and the shards that it serves.
type replica struct {
	keeper *lease.Keeper
	stop   context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	serves map[int]bool
	causes []error
}

// serving counts, over all replicas, who serves each shard now.
type serving struct {
	t     *testing.T
	mu    sync.Mutex
	count map[int]int
}

func (s *serving) change(shard, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[shard] += by; s.count[shard] > 1 {
		s.t.Errorf("shard %d has %d holders", shard, s.count[shard])
	}
}

func start(t *testing.T, bucket store, id string, all *serving) *replica {
	return startWith(t, bucket, id, all, nil)
}

func startWith(
	t *testing.T, bucket store, id string, all *serving, metrics prometheus.Registerer,
) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{
		keeper: lease.NewKeeper(
			bucket.cloud, bucket.KeyValue, id, shards, slog.New(slog.DiscardHandler), metrics,
		), stop: cancel, ended: make(chan error, 1), serves: map[int]bool{},
	}
	go func() {
		r.ended <- r.keeper.Run(ctx, func(ctx context.Context, shard int, held func() bool) error {
			all.change(shard, 1)
			r.set(shard, true)
			if !held() {
				t.Errorf("shard %d is served and not held", shard)
			}
			<-ctx.Done()
			if held() == errors.Is(context.Cause(ctx), lease.ErrLost) {
				t.Errorf("shard %d ended with %v, and held is %t", shard, context.Cause(ctx), held())
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

func (r *replica) set(shard int, serves bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if serves {
		r.serves[shard] = true
	} else {
		delete(r.serves, shard)
	}
}

func (r *replica) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.serves)
}

func (r *replica) end(t *testing.T) {
	t.Helper()
	r.stop()
	select {
	case err := <-r.ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("does not end")
	}
}

// store is the bucket of leases and its broker.
type store struct {
	jetstream.KeyValue
	cloud  *nats.Conn
	broker *streamstest.Broker
}

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
	bucket, all := leases(t), &serving{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	if share := a.keeper.Share(); len(share) != shards {
		t.Errorf("its share is %v", share)
	}
	a.end(t)
	if a.count() != 0 {
		t.Errorf("serves %d shards after its end", a.count())
	}
	// An orderly end leaves nothing behind: whoever comes next need not wait.
	b := start(t, bucket, "b", all)
	streamstest.Eventually(t, "all shards for the next", func() bool { return b.count() == shards })
	b.end(t)
}

func TestSharedAndHandedOver(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &serving{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	b := start(t, bucket, "b", all)
	streamstest.Eventually(t, "a share each",
		func() bool { return a.count() > 0 && b.count() > 0 && a.count()+b.count() == shards },
	)
	for _, cause := range a.causes {
		if !errors.Is(cause, lease.ErrHandedOver) {
			t.Errorf("a shard ended with %v", cause)
		}
	}
	b.end(t)
	streamstest.Eventually(t, "all shards again", func() bool { return a.count() == shards })
	a.end(t)
}

// TestRestartTakesItsOwn holds that a process that was killed and starts again under its id does
// not wait for its own leases to run out.
func TestRestartTakesItsOwn(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &serving{t: t, count: map[int]int{}}
	for _, key := range []string{"shard.0", "shard.1", "replica.a"} {
		if _, err := bucket.Create(t.Context(), key, []byte(`{"replica":"a"}`)); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	a.end(t)
}

// TestLostLease holds that a replica stops serving a shard that another one has got hold of.
func TestLostLease(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &serving{t: t, count: map[int]int{}}
	registry := prometheus.NewPedanticRegistry()
	a := startWith(t, bucket, "a", all, registry)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	wantMetrics(t, registry, shards, 0)
	if _, err := bucket.Put(t.Context(), "shard.3", []byte(`{"replica":"z"}`)); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "the shard is let go", func() bool { return a.count() == shards-1 })
	// Nobody renews it: the broker takes it away, and it is held again.
	streamstest.EventuallyWithin(
		t, streams.LeaseTTL+time.Minute, "the shard is back",
		func() bool { return a.count() == shards },
	)
	wantMetrics(t, registry, shards, 1)
	if len(a.causes) != 1 || !errors.Is(a.causes[0], lease.ErrLost) {
		t.Errorf("ended with %v", a.causes)
	}
	a.end(t)
	telemetrytest.Lint(t, registry)
	wantMetrics(t, registry, 0, 1)
}

// wantMetrics waits until as many leases are held, and were lost.
func wantMetrics(t *testing.T, registry *prometheus.Registry, held, lost float64) {
	t.Helper()
	streamstest.Eventually(t, "the metrics", func() bool {
		value := func(name string) float64 { return telemetrytest.Value(t, registry, "hubcloud_lease_"+name) }
		return value("shards_held") == held && value("lost_total") == lost &&
			value("shards_wanted") == shards
	})
}

// TestServeEnds holds that a shard that cannot be served ends all of it: the process must not go on
// without one.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	bucket := leases(t)
	k := lease.NewKeeper(
		bucket.cloud, bucket.KeyValue, "a", shards, slog.New(slog.DiscardHandler), nil,
	)
	err := k.Run(t.Context(), func(ctx context.Context, shard int, _ func() bool) error {
		if shard == 2 {
			return broken
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
}

// TestBrokerAway: the broker is away for longer than leases last. The replica lets go of its shards
// by itself, and has them again soon after.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &serving{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all shards", func() bool { return a.count() == shards })
	bucket.broker.Stop()
	streamstest.EventuallyWithin(
		t, streams.LeaseTTL, "all shards are let go", func() bool { return a.count() == 0 },
	)
	bucket.broker.Start(t)
	streamstest.Eventually(t, "all shards again", func() bool { return a.count() == shards })
	a.end(t)
}

// deaf is a bucket whose watches give what is there when they begin, and nothing of what happens
// once they are cut: as on a server that is cut off.
type deaf struct {
	jetstream.KeyValue
	cut *atomic.Bool
}

type deafWatcher struct {
	jetstream.KeyWatcher
	heard chan jetstream.KeyValueEntry
}

func (w deafWatcher) Updates() <-chan jetstream.KeyValueEntry { return w.heard }

func (d deaf) WatchAll(
	ctx context.Context, options ...jetstream.WatchOpt,
) (jetstream.KeyWatcher, error) {
	watcher, err := d.KeyValue.WatchAll(ctx, options...)
	if err != nil {
		return nil, err
	}
	heard := make(chan jetstream.KeyValueEntry, 1000)
	go func() {
		loaded := false
		for entry := range watcher.Updates() {
			if !loaded || !d.cut.Load() {
				heard <- entry
			}
			loaded = loaded || entry == nil
		}
		close(heard)
	}()
	return deafWatcher{watcher, heard}, nil
}

// recovery is how long after everything is there again a shard may be without a holder. That it is
// held in 15 s is promised of a machine with nothing else to do.
const recovery = time.Minute

// After a broker had been cut off, no replica held any shard until they were restarted: the keys
// had gone, the marks of that were missed, and each went on writing over revisions that were no
// more, once a second and without a word.
func TestMissedByTheWatch(t *testing.T) {
	t.Parallel()
	t.Run("keys that have gone", func(t *testing.T) {
		t.Parallel()
		bucket, all := leases(t), &serving{t: t, count: map[int]int{}}
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
		bucket.KeyValue = deaf{kv, cut}
		a := start(t, bucket, "a", all)
		streamstest.EventuallyWithin(
			t, recovery, "the other is seen", func() bool { return a.keeper.Share() != nil },
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
	t.Run("keys that somebody else has written", func(t *testing.T) {
		t.Parallel()
		bucket, all := leases(t), &serving{t: t, count: map[int]int{}}
		kv, cut := bucket.KeyValue, &atomic.Bool{}
		bucket.KeyValue = deaf{kv, cut}
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

// A key whose time is over stays where the broker does not notice: with its replica gone nobody had
// the shard any more.
func TestMissedByTheBroker(t *testing.T) {
	t.Parallel()
	store, all := leases(t), &serving{t: t, count: map[int]int{}}
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
		t.Errorf("a lease that may be held was taken after %s", took)
	}
	// One who renews keeps its shards.
	b := start(t, store, "b", all)
	streamstest.EventuallyWithin(
		t, recovery, "a share each",
		func() bool { return a.count() > 0 && b.count() > 0 && a.count()+b.count() == shards },
	)
	if a.lost()+b.lost() > 0 {
		t.Error("a lease was lost")
	}
	b.end(t)
	a.end(t)
}

// lost is how many leases the replica has lost.
func (r *replica) lost() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := 0
	for _, cause := range r.causes {
		if errors.Is(cause, lease.ErrLost) {
			lost++
		}
	}
	return lost
}
