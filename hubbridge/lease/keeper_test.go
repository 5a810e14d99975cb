package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const groups = 8

// replica is a running Keeper, with the groups that it serves and the causes that ended groups.
type replica struct {
	keeper *lease.Keeper
	stop   context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	serves map[int]bool
	causes []error
}

// holders counts the replicas that serve each group. The test fails when two serve the same group.
type holders struct {
	t     *testing.T
	mu    sync.Mutex
	count map[int]int
}

func (s *holders) change(group, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count[group] += by; s.count[group] > 1 {
		s.t.Errorf("group %d has %d holders", group, s.count[group])
	}
}

func newKeeper(t *testing.T, bucket store, id string, metrics prometheus.Registerer) *lease.Keeper {
	t.Helper()
	keeper, err := lease.NewKeeper(lease.Config{
		Conn: bucket.cloud, Bucket: bucket.KeyValue, ReplicaID: id, Groups: groups,
		Logger: slog.New(slog.DiscardHandler), Metrics: metrics,
	})
	if err != nil {
		t.Fatal(err)
	}
	keeper.Hurry()
	return keeper
}

// start runs a replica until its method end is called or the test ends.
func start(t *testing.T, bucket store, id string, all *holders) *replica {
	return startWith(t, bucket, id, all, nil)
}

func startWith(t *testing.T, bucket store, id string, all *holders, metrics prometheus.Registerer) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{
		keeper: newKeeper(t, bucket, id, metrics),
		stop:   cancel, ended: make(chan error, 1), serves: map[int]bool{},
	}
	go func() {
		r.ended <- r.keeper.Run(ctx, func(ctx context.Context, group int, held func() bool) error {
			all.change(group, 1)
			r.set(group, true)
			if !held() {
				t.Errorf("group %d is served while held returns false", group)
			}
			<-ctx.Done()
			if held() == errors.Is(context.Cause(ctx), lease.ErrLost) {
				t.Errorf("group %d ended with %v while held is %t", group, context.Cause(ctx), held())
			}
			r.set(group, false)
			all.change(group, -1)
			r.mu.Lock()
			r.causes = append(r.causes, context.Cause(ctx))
			r.mu.Unlock()
			return nil
		})
	}()
	t.Cleanup(func() { cancel() })
	return r
}

// set records whether the replica serves a group.
func (r *replica) set(group int, serves bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if serves {
		r.serves[group] = true
	} else {
		delete(r.serves, group)
	}
}

// endings returns the causes that ended groups so far.
func (r *replica) endings() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.causes)
}

// count returns how many groups the replica serves.
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
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
	if share := a.keeper.Share(); len(share) != groups {
		t.Errorf("Share = %v, want all %d groups", share, groups)
	}
	a.end(t)
	if a.count() != 0 {
		t.Errorf("%d groups are served after Run, want 0", a.count())
	}
	// Run has released the leases: the next replica need not wait.
	b := start(t, bucket, "b", all)
	streamstest.Eventually(t, "all groups for the next", func() bool { return b.count() == groups })
	b.end(t)
}

func TestSharedAndHandedOver(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
	b := start(t, bucket, "b", all)
	streamstest.Eventually(t, "a share each",
		func() bool { return a.count() > 0 && b.count() > 0 && a.count()+b.count() == groups },
	)
	for _, cause := range a.endings() {
		if !errors.Is(cause, lease.ErrHandedOver) {
			t.Errorf("a group ended with %v, want %v", cause, lease.ErrHandedOver)
		}
	}
	b.end(t)
	streamstest.Eventually(t, "all groups again", func() bool { return a.count() == groups })
	a.end(t)
}

// TestRestartAcquiresItsOwn holds that a replica that was killed and restarts under its id does not
// wait for its own leases to expire.
func TestRestartAcquiresItsOwn(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	for _, key := range []string{"group.0", "group.1", "replica.a"} {
		if _, err := bucket.Create(t.Context(), key, []byte(`{"replica":"a"}`)); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
	a.end(t)
}

// TestLostLease holds that a replica stops serving a group whose key another replica has written.
func TestLostLease(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	registry := prometheus.NewPedanticRegistry()
	a := startWith(t, bucket, "a", all, registry)
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
	wantMetrics(t, registry, groups, 0)
	if _, err := bucket.Put(t.Context(), "group.3", []byte(`{"replica":"z"}`)); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "the group is not served", func() bool { return a.count() == groups-1 })
	// The other replica does not renew the key.
	streamstest.EventuallyWithin(t, streams.LeaseTTL+time.Minute, "the group is served again",
		func() bool { return a.count() == groups })
	wantMetrics(t, registry, groups, 1)
	if ends := a.endings(); len(ends) != 1 || !errors.Is(ends[0], lease.ErrLost) {
		t.Errorf("groups ended with %v, want one %v", ends, lease.ErrLost)
	}
	a.end(t)
	streamstest.LintMetrics(t, registry)
	wantMetrics(t, registry, 0, 1)
}

// wantMetrics waits until the metrics report the numbers of held and lost leases.
func wantMetrics(t *testing.T, registry *prometheus.Registry, held, lost float64) {
	t.Helper()
	streamstest.Eventually(t, "the metrics", func() bool {
		value := func(name string) float64 {
			return streamstest.MetricValue(t, registry, "hubcloud_lease_"+name)
		}
		return value("groups_held") == held && value("lost_total") == lost &&
			value("groups_wanted") == groups
	})
}

// TestServeError holds that an error of serve ends Run: the process must not continue without a
// group.
func TestServeError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	bucket := leases(t)
	k := newKeeper(t, bucket, "a", nil)
	err := k.Run(t.Context(), func(ctx context.Context, group int, _ func() bool) error {
		if group == 2 {
			return broken
		}
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("Run = %v, want %v", err, broken)
	}
}

// TestBrokerAway holds that a replica stops serving its groups when the broker is away for longer
// than leases last, and serves them again afterwards.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
	a := start(t, bucket, "a", all)
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
	bucket.broker.Stop()
	streamstest.Eventually(t, "no group is served", func() bool { return a.count() == 0 })
	bucket.broker.Start(t)
	streamstest.Eventually(t, "all groups again", func() bool { return a.count() == groups })
	a.end(t)
}

// failing is a bucket whose leases are renewed only by every third try.
type failing struct {
	jetstream.KeyValue
	err   error // of the others
	mu    sync.Mutex
	tries map[string]int
}

// Update implements jetstream.KeyValue.
func (f *failing) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if revision > 0 && !f.try(key) {
		return 0, f.err
	}
	return f.KeyValue.Update(ctx, key, value, revision)
}

// try counts a try, and reports whether it may succeed.
func (f *failing) try(key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[key]++
	return f.tries[key]%3 == 0
}

// renewals returns how often all leases were renewed.
func (f *failing) renewals() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	least := math.MaxInt
	for group := range groups {
		least = min(least, f.tries[fmt.Sprint("group.", group)]/3)
	}
	return least
}

// A renewal that failed was tried again only after a pause in which the lease could end, although
// the bucket had a new leader. A server that is cut off rejects a second renewal while it waits for
// the others to store the first: the lease counted as lost to another replica.
func TestRenewalIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"no answer": nats.ErrTimeout, "a renewal is on its way": jetstream.ErrKeyExists,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
			f := &failing{KeyValue: bucket.KeyValue, err: err, tries: map[string]int{}}
			bucket.KeyValue = f
			a := start(t, bucket, "a", all)
			streamstest.Eventually(t, "two renewals", func() bool { return f.renewals() >= 2 })
			if lost := a.lost(); lost > 0 {
				t.Errorf("%d leases were lost, want 0", lost)
			}
			a.end(t)
		})
	}
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
		bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
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
		a := start(t, bucket, "a", all)
		streamstest.EventuallyWithin(t, recovery, "the other replica is known",
			func() bool { return a.keeper.Share() != nil })
		cut.Store(true)
		for _, key := range keys {
			if err := kv.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		streamstest.EventuallyWithin(t, recovery, "all groups", func() bool { return a.count() == groups })
		t.Logf("all groups after %s", time.Since(began))
		a.end(t)
	})
	t.Run("keys written by another replica", func(t *testing.T) {
		t.Parallel()
		bucket, all := leases(t), &holders{t: t, count: map[int]int{}}
		kv, cut := bucket.KeyValue, &atomic.Bool{}
		bucket.KeyValue = cutOff{kv, cut}
		a := start(t, bucket, "a", all)
		streamstest.EventuallyWithin(t, recovery, "all groups", func() bool { return a.count() == groups })
		cut.Store(true)
		for group := range groups {
			key := fmt.Sprint("group.", group)
			if _, err := kv.Put(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
				t.Fatal(err)
			}
			if err := kv.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		streamstest.EventuallyWithin(t, recovery, "all groups are lost", func() bool { return a.lost() == groups })
		began := time.Now()
		streamstest.EventuallyWithin(t, recovery, "all groups again", func() bool { return a.count() == groups })
		t.Logf("all groups after %s", time.Since(began))
		a.end(t)
	})
}

// TestMissedByTheBroker tries expired keys that the broker does not remove. Regression: no replica
// acquired the groups of such keys.
func TestMissedByTheBroker(t *testing.T) {
	t.Parallel()
	store, all := leases(t), &holders{t: t, count: map[int]int{}}
	js, err := jetstream.New(store.cloud)
	if err != nil {
		t.Fatal(err)
	}
	if store.KeyValue, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "timeless"}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"replica.z", "group.0", "group.1", "group.2", "group.3"} {
		if _, err := store.Create(t.Context(), key, []byte(`{"replica":"z"}`)); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	a := start(t, store, "a", all)
	streamstest.EventuallyWithin(t, recovery, "all groups", func() bool { return a.count() == groups })
	if took := time.Since(began); took < streams.LeaseTTL/2 {
		t.Errorf("a lease was acquired after %s, want at least %s", took, streams.LeaseTTL/2)
	}
	// A replica that renews its leases keeps them. It would take the replica z for alive at first.
	if err := store.Delete(t.Context(), "replica.z"); err != nil {
		t.Fatal(err)
	}
	b := start(t, store, "b", all)
	streamstest.EventuallyWithin(t, recovery, "a share each",
		func() bool { return a.count() > 0 && b.count() > 0 && a.count()+b.count() == groups })
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
