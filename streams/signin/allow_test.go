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

// Each replica counted the mails to an address for itself, or not at all. Now all replicas share
// one limit.
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
	// Some of many concurrent calls may be rejected below the limit, but none is allowed above it.
	if all.Wait(); granted.Load() < 1 || granted.Load() > 5 {
		t.Errorf("%d of 20 concurrent calls allowed, want 1 to 5", granted.Load())
	}
	allow := func(name string, at time.Time) time.Duration {
		t.Helper()
		wait, err := replicas[0].Allow(t.Context(), name, 5, 10, at)
		if err != nil {
			t.Fatal(err)
		}
		return wait
	}
	for granted.Load() < 5 {
		if allow("to ann", now) > 0 {
			t.Fatalf("only %d allowed, want 5", granted.Load())
		}
		granted.Add(1)
	}
	if wait := allow("to ann", now.Add(time.Minute)); wait != 5*time.Minute {
		t.Errorf("the sixth, a minute later: got wait %v, want 5m", wait)
	}
	if wait := allow("to bob", now); wait != 0 {
		t.Errorf("another name: got wait %v, want none", wait)
	}
	if wait := allow("to ann", now.Add(6*time.Minute)); wait != 0 {
		t.Errorf("after six minutes: got wait %v, want none", wait)
	}
	if wait := allow("to ann", now.Add(7*time.Minute)); wait != 5*time.Minute {
		t.Errorf("after seven minutes: got wait %v, want 5m", wait)
	}
	keys, err := buckets.SignIn.Keys(t.Context())
	if err != nil || len(keys) != 2 {
		t.Errorf("keys of the bucket: got %q, %v, want 2", keys, err)
	}
}
