package shares_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hubcloud/domain"
	"hubcloud/streams/shares"
	"hubcloud/streams/streamstest"
)

func newPool(limits shares.Limits) *shares.Pool {
	return shares.NewPool(nil, shares.PoolConfig{
		Name: "slots", What: "slots are taken", Of: "key", Limits: limits,
	})
}

// takeAll takes n at a time for a spender until the pool rejects one, and returns what it got.
func takeAll(p *shares.Pool, s shares.Spender, n int64) (got int64) {
	for {
		if _, err := p.Take(s, n); err != nil {
			return got
		}
		got += n
	}
}

// One organization could hold all slots, and the others had to wait for it. However many
// organizations take all that they get, each leaves slots for the next.
func TestPoolLeavesAShare(t *testing.T) {
	t.Parallel()
	p := newPool(shares.Limits{Total: 1000})
	first := takeAll(p, shares.Spender{Org: "a", ID: "1"}, 1)
	if first != 500 {
		t.Errorf("the first organization got %d of 1000, want half", first)
	}
	left := 1000 - first
	for i := range 6 {
		got := takeAll(p, shares.Spender{Org: fmt.Sprint("b", i)}, 1)
		if got == 0 || got > (left+1)/2 {
			t.Errorf("organization %d got %d of the %d that were left", i, got, left)
		}
		left -= got
	}
	p.Adjust(shares.Spender{Org: "a", ID: "1"}, -first)
	if got := takeAll(p, shares.Spender{Org: "late"}, 1); got < first/2 {
		t.Errorf("after the first organization's release, the next got %d of %d", got, left+first)
	}
}

// Each bound is the spender's own, the organization's, or that of all addresses together.
func TestPoolBounds(t *testing.T) {
	t.Parallel()
	p := newPool(shares.Limits{Total: 400, PerOrg: 150, PerID: 100})
	one, two, three := shares.Spender{Org: "org", ID: "1"}, shares.Spender{Org: "org", ID: "2"},
		shares.Spender{Org: "org", ID: "3"}
	other, address := shares.Spender{Org: "other", ID: "4"}, shares.Spender{ID: "192.0.2.1/32"}
	for _, c := range []struct {
		who  shares.Spender
		n    int64
		want domain.Code
		text string
	}{
		{one, 90, "", ""},
		{one, 20, domain.CodeRateLimited, "at most 100 of one key"},
		{two, 60, "", ""},
		{three, 1, domain.CodeRateLimited, "at most 150 of one organization"},
		{other, 100, "", ""},
		{address, 76, domain.CodeServiceUnavailable, "too many slots are taken"},
		{address, 75, "", ""},
		{shares.Spender{ID: "192.0.2.2/32"}, 1, domain.CodeServiceUnavailable, "too many"},
	} {
		_, err := p.Take(c.who, c.n)
		if (err == nil) != (c.want == "") ||
			err != nil && (domain.CodeOf(err) != c.want || !strings.Contains(err.Error(), c.text)) {
			t.Errorf("%+v takes %d: got %v, want %q %s", c.who, c.n, err, c.want, c.text)
		}
	}
	for s, n := range map[shares.Spender]int64{one: 90, two: 60, other: 100, address: 75} {
		p.Adjust(s, -n)
	}
	if spender, org, share := p.Held(one); spender != 0 || org != 0 || share != 150 {
		t.Errorf("after all were released: got %d, %d of %d, want 0, 0 of 150", spender, org, share)
	}
}

// Requests of one organization were served before others' that came later. Now organizations are
// served in turn, then the keys of each.
func TestPoolServesInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(shares.Limits{Total: 8, PerOrg: 2, Waiting: 200})
		ctx, cancel := context.WithCancel(t.Context())
		order := make(chan string, 100)
		wait := func(ctx context.Context, org, id string) {
			go func() {
				release, err := p.Wait(ctx, shares.Spender{Org: org, ID: id})
				if err != nil {
					order <- org + id + " rejected"
					return
				}
				order <- org + id
				if ctx.Err() == nil {
					release()
				}
			}()
			synctest.Wait()
		}
		next := func() string {
			synctest.Wait()
			var got string
			for len(order) > 0 {
				got += <-order + " "
			}
			return strings.TrimSpace(got)
		}
		a, b := shares.Spender{Org: "a", ID: "1"}, shares.Spender{Org: "b", ID: "1"}
		p.Adjust(a, 2)
		p.Adjust(b, 2)
		for range 3 {
			wait(t.Context(), "a", "1")
		}
		wait(t.Context(), "a", "2")
		wait(ctx, "a", "3")
		wait(t.Context(), "c", "1")
		if got := next(); got != "c1" {
			t.Errorf("while two organizations hold all that they get: got %q served, want c1", got)
		}
		cancel()
		if got := next(); got != "a3 rejected" {
			t.Errorf("a request whose context ended: got %q, want it rejected", got)
		}
		p.Adjust(a, -1)
		if got := next(); !strings.HasPrefix(got, "a2 ") || strings.Count(got, "a1") != 3 {
			t.Errorf("after a release: got %q, want the key that holds nothing first, then all", got)
		}
		p.Adjust(a, -1)
		p.Adjust(b, -2)
		for range 100 {
			wait(t.Context(), "a", "1")
		}
		if got := next(); strings.Contains(got, "rejected") {
			t.Errorf("with free slots: got %q, want all served", got)
		}
	})
}

// More than Limits.Waiting requests of an organization are rejected at once.
func TestPoolWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(shares.Limits{Total: 2, PerOrg: 1, Waiting: 1})
		who := shares.Spender{Org: "a", ID: "1"}
		release, err := p.Wait(t.Context(), who)
		streamstest.Must(t, err)
		served := make(chan error)
		go func() {
			_, err := p.Wait(t.Context(), who)
			served <- err
		}()
		synctest.Wait()
		if _, err := p.Wait(t.Context(), who); domain.CodeOf(err) != domain.CodeRateLimited {
			t.Errorf("the second that waits: got %v, want rate_limited", err)
		}
		release()
		if err := <-served; err != nil {
			t.Errorf("the first that waits: got %v, want it served", err)
		}
	})
}

// What is measured replaces what was counted, and whoever has less then may take more: one
// organization up to its part of all.
func TestPoolReplace(t *testing.T) {
	t.Parallel()
	p := newPool(shares.Limits{Total: 400, Leave: 4, PerID: 200})
	one, two := shares.Spender{Org: "a", ID: "1"}, shares.Spender{Org: "a", ID: "2"}
	if got := takeAll(p, one, 10) + takeAll(p, two, 10); got != 300 {
		t.Errorf("an organization got %d of 400, want three quarters", got)
	}
	other := shares.Spender{Org: "b", ID: "3"}
	p.Replace(map[shares.Spender]int64{two: 50, other: 60})
	if spender, org, share := p.Held(one); spender != 0 || org != 50 || share != 255 {
		t.Errorf("after a measurement: got %d, %d of %d, want 0, 50 of 255", spender, org, share)
	}
	if got := takeAll(p, one, 5); got != 200 {
		t.Errorf("a spender that was measured with nothing got %d, want the 200 of one", got)
	}
}

// The registry names who holds most and who was held back.
func TestRegistry(t *testing.T) {
	t.Parallel()
	registry := new(shares.Registry)
	p := shares.NewPool(registry, shares.PoolConfig{
		Name: "slots", What: "slots are taken", Limits: shares.Limits{Total: 8},
	})
	takeAll(p, shares.Spender{Org: "a", ID: "1"}, 1)
	if _, err := p.Take(shares.Spender{Org: "b", ID: "1"}, 1); err != nil {
		t.Error(err)
	}
	uses := registry.Report()
	if len(uses) != 1 || uses[0].Used != 5 || uses[0].HeldBack != 1 || len(uses[0].By) != 2 ||
		uses[0].By[0] != (shares.SpenderUse{Spender: "a", Used: 4, HeldBack: 1}) {
		t.Errorf("got %+v, want 5 of 8 used, and a held back once with 4", uses)
	}
	const want = `
# HELP hubcloud_shares_limit How much of a shared resource can be held.
# TYPE hubcloud_shares_limit gauge
hubcloud_shares_limit{resource="slots"} 8
# HELP hubcloud_shares_used What is held of a shared resource.
# TYPE hubcloud_shares_used gauge
hubcloud_shares_used{resource="slots"} 5
`
	err := testutil.CollectAndCompare(
		registry, strings.NewReader(want), "hubcloud_shares_used", "hubcloud_shares_limit",
	)
	if err != nil {
		t.Error(err)
	}
}
