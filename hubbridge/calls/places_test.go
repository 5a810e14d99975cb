package calls_test

import (
	"errors"
	"fmt"
	"testing"

	"hubcloud/domain"
	"hubcloud/hubbridge/calls"
)

// fill takes places for an organization, each for another hub, until one is refused, and returns
// how many it got.
func fill(t *testing.T, p *calls.Places, org string) (got int, releases []func()) {
	t.Helper()
	for {
		release, err := p.Take(org, domain.HubID(fmt.Sprintf("hub-%s-%d", org, got)))
		if err != nil {
			var refused *domain.Error
			if !errors.As(err, &refused) || refused.Code != domain.CodeRateLimited ||
				refused.RetryAfter <= 0 {
				t.Fatalf("place %d of %s: %v, want rate_limited with a RetryAfter", got, org, err)
			}
			return got, releases
		}
		if got++; got > 10_000 {
			t.Fatalf("%s got %d places", org, got)
		}
		releases = append(releases, release)
	}
}

// TestFairShare: one organization could hold all of the calls that there are, and others then
// waited for it. However many organizations take all that they get, each leaves room for the next.
func TestFairShare(t *testing.T) {
	t.Parallel()
	p := calls.NewPlaces(calls.Bounds{Total: 1000, PerOrg: 1000, PerHub: 10}, nil)
	first, releases := fill(t, p, "a")
	if first != 500 {
		t.Errorf("the first organization got %d of 1000, want half", first)
	}
	left := 1000 - first
	for i := range 6 {
		got, _ := fill(t, p, fmt.Sprint("b", i))
		if got == 0 || got > (left+1)/2 {
			t.Errorf("organization %d got %d of the %d that were left", i, got, left)
		}
		left -= got
	}
	for _, release := range releases {
		release()
	}
	if got, _ := fill(t, p, "late"); got < first/2 {
		t.Errorf("once the first had let go, the next got %d of %d", got, left+first)
	}
}

// TestPlacesAreBounded: an organization has its bound whatever is free, and so has a hub; what is
// released can be taken again.
func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	p := calls.NewPlaces(calls.Bounds{Total: 1000, PerOrg: 20, PerHub: 5}, nil)
	if got, _ := fill(t, p, "a"); got != 20 {
		t.Errorf("an organization got %d, want 20", got)
	}
	var releases []func()
	for i := range 5 {
		release, err := p.Take("b", hub)
		if err != nil {
			t.Fatalf("call %d to a hub: %v", i, err)
		}
		releases = append(releases, release)
	}
	if _, err := p.Take("b", hub); domain.CodeOf(err) != domain.CodeRateLimited {
		t.Errorf("the sixth call to a hub: %v", err)
	}
	if _, err := p.Take("b", "hub-dddd-dddd-dddd"); err != nil {
		t.Errorf("a call to another hub: %v", err)
	}
	releases[0]()
	if _, err := p.Take("b", hub); err != nil {
		t.Errorf("a call to the hub after one ended: %v", err)
	}
}
