package signin_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/signin"
	"hubcloud/streams/streamstest"
)

// TestAllowHoldsOverReplicas: mails to an address were counted by each replica for itself, or not
// at all.
func TestAllowHoldsOverReplicas(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	var replicas []*signin.Store
	var buckets *streams.Buckets
	for range 2 {
		conns := broker.Connect(t)
		var err error
		if buckets, err = streams.OpenBuckets(t.Context(), conns, 1); err != nil {
			t.Fatal(err)
		}
		replicas = append(replicas, signin.New(conns.Cloud, buckets.SignIn, nil))
	}
	now := time.Now()
	var granted atomic.Int32
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			wait, err := replicas[n%2].Allow(t.Context(), "to ann", 5, 10, now)
			if err != nil {
				t.Error(err)
			}
			if wait == 0 {
				granted.Add(1)
			}
		})
	}
	// Of many at the same moment some are told to wait although there would be room, and never one
	// too many is let through.
	if all.Wait(); granted.Load() < 1 || granted.Load() > 5 {
		t.Errorf("%d of 20 are granted at once", granted.Load())
	}
	take := func(name string, at time.Time) time.Duration {
		t.Helper()
		wait, err := replicas[0].Allow(t.Context(), name, 5, 10, at)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	for granted.Load() < 5 {
		if take("to ann", now) > 0 {
			t.Fatalf("only %d are granted", granted.Load())
		}
		granted.Add(1)
	}
	if wait := take("to ann", now.Add(time.Minute)); wait != 5*time.Minute {
		t.Errorf("the sixth waits %v", wait)
	}
	if wait := take("to bob", now); wait != 0 {
		t.Errorf("another waits %v", wait)
	}
	if wait := take("to ann", now.Add(6*time.Minute)); wait != 0 {
		t.Errorf("six minutes later it waits %v", wait)
	}
	if wait := take("to ann", now.Add(7*time.Minute)); wait != 5*time.Minute {
		t.Errorf("and then %v", wait)
	}
	status, err := buckets.SignIn.Keys(t.Context())
	if err != nil || len(status) != 2 {
		t.Errorf("%q, %v", status, err)
	}
}
