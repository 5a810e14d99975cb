package rpc_test

import (
	"errors"
	"fmt"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/rpc"
)

// acquireAll acquires slots for an organization, each for another hub, until the limiter rejects
// one.
func acquireAll(t *testing.T, l *rpc.Limiter, org string) (got int, releases []func()) {
	t.Helper()
	for {
		release, err := l.Acquire(org, domain.HubID(fmt.Sprintf("hub-%s-%d", org, got)))
		if err != nil {
			var rejected *domain.Error
			if !errors.As(err, &rejected) || rejected.Code != domain.CodeRateLimited ||
				rejected.RetryAfter <= 0 {
				t.Fatalf("Acquire %d of %s: %v, want rate_limited with a RetryAfter", got, org, err)
			}
			return got, releases
		}
		if got++; got > 10_000 {
			t.Fatalf("%s got %d slots", org, got)
		}
		releases = append(releases, release)
	}
}

// TestLimiterLeavesAFairShare: one organization could hold all slots, and the others had to wait
// for it. However many organizations take all that they get, each leaves slots for the next.
func TestLimiterLeavesAFairShare(t *testing.T) {
	t.Parallel()
	l := rpc.NewLimiter(rpc.Limits{Total: 1000, PerOrg: 1000, PerHub: 10}, nil)
	first, releases := acquireAll(t, l, "a")
	if first != 500 {
		t.Errorf("the first organization got %d of 1000, want half", first)
	}
	left := 1000 - first
	for i := range 6 {
		got, _ := acquireAll(t, l, fmt.Sprint("b", i))
		if got == 0 || got > (left+1)/2 {
			t.Errorf("organization %d got %d of the %d that were left", i, got, left)
		}
		left -= got
	}
	for _, release := range releases {
		release()
	}
	if got, _ := acquireAll(t, l, "late"); got < first/2 {
		t.Errorf("after the first organization's release, the next got %d of %d", got, left+first)
	}
}

// TestLimiterBounds: an organization and a hub have their bounds although slots are free, and a
// released slot can be acquired again.
func TestLimiterBounds(t *testing.T) {
	t.Parallel()
	l := rpc.NewLimiter(rpc.Limits{Total: 1000, PerOrg: 20, PerHub: 5}, nil)
	if got, _ := acquireAll(t, l, "a"); got != 20 {
		t.Errorf("an organization got %d, want 20", got)
	}
	var releases []func()
	for i := range 5 {
		release, err := l.Acquire("b", hub)
		if err != nil {
			t.Fatalf("call %d to a hub: %v", i, err)
		}
		releases = append(releases, release)
	}
	if _, err := l.Acquire("b", hub); domain.CodeOf(err) != domain.CodeRateLimited {
		t.Errorf("the sixth call to a hub: %v, want rate_limited", err)
	}
	if _, err := l.Acquire("b", "hub-dddd-dddd-dddd"); err != nil {
		t.Errorf("a call to another hub: %v", err)
	}
	releases[0]()
	if _, err := l.Acquire("b", hub); err != nil {
		t.Errorf("a call to the hub after one ended: %v", err)
	}
}
