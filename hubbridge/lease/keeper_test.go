package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
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
	end    func(t *testing.T) // stops the replica and waits until Run has returned

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
	streamstest.Must(t, err)
	return keeper
}

// start runs a replica until its method end is called or the test ends.
func start(t *testing.T, bucket store, id string, metrics prometheus.Registerer) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{keeper: newKeeper(t, bucket, id, metrics), serves: map[int]bool{}}
	ended := make(chan error, 1)
	go func() {
		ended <- r.keeper.Run(ctx, func(ctx context.Context, group int, held func() bool) error {
			bucket.all.change(group, 1)
			r.set(group, true)
			if !held() {
				t.Errorf("group %d is served while held returns false", group)
			}
			<-ctx.Done()
			if held() == errors.Is(context.Cause(ctx), lease.ErrLost) {
				t.Errorf(
					"group %d ended with %v while held is %t", group, context.Cause(ctx), held(),
				)
			}
			r.set(group, false)
			bucket.all.change(group, -1)
			r.mu.Lock()
			r.causes = append(r.causes, context.Cause(ctx))
			r.mu.Unlock()
			return nil
		})
	}()
	var once sync.Once
	r.end = func(t *testing.T) {
		t.Helper()
		once.Do(func() {
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("Run = %v, want %v", err, context.Canceled)
			}
		})
	}
	t.Cleanup(func() { r.end(t) })
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

// store is the bucket of leases with its broker and the replicas.
type store struct {
	jetstream.KeyValue
	cloud  *nats.Conn
	broker *streamstest.Broker
	all    *holders
}

// leases returns an empty bucket of leases on a broker of its own.
func leases(t *testing.T) store {
	t.Helper()
	broker := streamstest.New(t)
	conns := broker.Connect(t)
	buckets, err := streams.OpenBuckets(t.Context(), conns, 1)
	streamstest.Must(t, err)
	return store{buckets.Leases, conns.Cloud, broker, &holders{t: t, count: map[int]int{}}}
}

func TestSharedAndHandedOver(t *testing.T) {
	t.Parallel()
	bucket := leases(t)
	a := start(t, bucket, "a", nil)
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
	b := start(t, bucket, "b", nil)
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
}

// TestRestartAcquiresItsOwn holds that a replica that was killed and restarts under its id does not
// wait for its own leases to expire.
func TestRestartAcquiresItsOwn(t *testing.T) {
	t.Parallel()
	bucket := leases(t)
	for _, key := range []string{"group.0", "group.1", "replica.a"} {
		if _, err := bucket.Create(t.Context(), key, []byte(`{"replica":"a"}`)); err != nil {
			t.Fatal(err)
		}
	}
	a := start(t, bucket, "a", nil)
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
}

// TestLostLease holds that a replica stops serving a group whose key another replica has written.
func TestLostLease(t *testing.T) {
	t.Parallel()
	bucket := leases(t)
	registry := prometheus.NewPedanticRegistry()
	a := start(t, bucket, "a", registry)
	streamstest.Eventually(t, "all groups", func() bool { return a.count() == groups })
	wantMetrics(t, registry, groups, 0)
	if _, err := bucket.Put(t.Context(), "group.3", []byte(`{"replica":"z"}`)); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(
		t, "the group is not served", func() bool { return a.count() == groups-1 },
	)
	// The other replica does not renew the key.
	streamstest.EventuallyWithin(
		t, streams.LeaseTTL+time.Minute, "the group is served again",
		func() bool { return a.count() == groups },
	)
	wantMetrics(t, registry, groups, 1)
	if ends := a.endings(); len(ends) != 1 || !errors.Is(ends[0], lease.ErrLost) {
		t.Errorf("groups ended with %v, want one %v", ends, lease.ErrLost)
	}
	a.end(t)
	wantMetrics(t, registry, 0, 1)
}

// wantMetrics waits until the metrics report the numbers of held and lost leases.
func wantMetrics(t *testing.T, registry *prometheus.Registry, held, lost float64) {
	t.Helper()
	streamstest.Eventually(t, "the metrics", func() bool {
		value := func(name string) float64 {
			return streamstest.MetricValue(t, registry, "hubcloud_lease_"+name)
		}
		return value("groups_held") == held && value("lost_total") == lost && value("groups_wanted") == groups
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

// Each election of the bucket's leader ended all leases, and the events of hubs waited for that too.
// A group whose journal fences former holders is served on while the bucket does not answer.
func TestServedOnWithoutTheBroker(t *testing.T) {
	t.Parallel()
	bucket := leases(t)
	keeper := newKeeper(t, bucket, "a", nil)
	terms := make(chan *lease.Term, 100)
	streamstest.Run(t, "keeper", func(ctx context.Context) error {
		return keeper.RunFenced(ctx, func(ctx context.Context, group int, term *lease.Term) error {
			if group == 0 {
				terms <- term
			}
			if group == 0 && len(terms) == 1 {
				return lease.ErrLost // another replica has fenced it: the keeper acquires it again
			}
			<-ctx.Done()
			return nil
		})
	})
	streamstest.Eventually(t, "the group is acquired twice", func() bool { return len(terms) == 2 })
	if first := <-terms; first.Serving() {
		t.Error("serving after ErrLost: got true, want false")
	}
	term := <-terms
	bucket.broker.Stop()
	streamstest.Eventually(t, "the lease is uncertain", func() bool { return !term.Held() })
	streamstest.Eventually(t, "the group is served", term.Serving)
	bucket.broker.Start(t)
	streamstest.Eventually(t, "the lease is held again", term.Held)
}

// failing is a bucket whose leases are renewed only by every third try.
type failing struct {
	jetstream.KeyValue
	err   error // of the others
	mu    sync.Mutex
	tries map[string]int
}

// Update implements jetstream.KeyValue.
func (f *failing) Update(
	ctx context.Context, key string, value []byte, revision uint64,
) (uint64, error) {
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
			bucket := leases(t)
			f := &failing{KeyValue: bucket.KeyValue, err: err, tries: map[string]int{}}
			bucket.KeyValue = f
			a := start(t, bucket, "a", nil)
			streamstest.Eventually(t, "two renewals", func() bool { return f.renewals() >= 2 })
			if lost := a.lost(); lost > 0 {
				t.Errorf("%d leases were lost, want 0", lost)
			}
		})
	}
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
