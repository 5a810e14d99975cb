package ingest

import (
	"runtime"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/shares"
)

// ownedByPrefix is an Ownership in which a hub belongs to the organization that its id begins with.
type ownedByPrefix struct{}

func (ownedByPrefix) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	return domain.HubAccess{OrgID: string(hub[:3])}, true
}

// Regression: hubs had their turn in the order in which they came, so a hub waited for one message of each
// of the thousand hubs of an organization that sent as much as they could.
func TestOrganizationsHaveTurns(t *testing.T) {
	t.Parallel()
	sh := NewShard(Config{Ownership: ownedByPrefix{}, Metrics: NewMetrics(nil)})
	for _, hub := range []domain.HubID{
		"all-aaaa-aaaa-aaa2", "all-aaaa-aaaa-aaa3", "all-aaaa-aaaa-aaa4", "one-aaaa-aaaa-aaa2", "all-aaaa-aaaa-aaa5",
	} {
		for range 2 {
			sh.Observe(hub, presence.Observation{})
		}
	}
	place := 0
	for n := 1; ; n++ {
		s, it, waits := sh.next()
		if !waits {
			if n != 11 || place > 2 {
				t.Errorf("got %d turns, the other organization's is number %d, want 10, and at most 2", n-1, place)
			}
			return
		}
		if s.hub[:3] == "one" && place == 0 {
			place = n
		}
		sh.finish(t.Context(), s, it, 0, nil)
	}
}

// Regression: a hub that sent as fast as it got acks took the processors, so requests of other
// organizations took three times as long.
func TestHubsWaitWhileOthersAreActive(t *testing.T) {
	t.Parallel()
	now, registry := time.Now(), new(shares.Registry)
	budget := NewBudget(BudgetConfig{Shares: registry, Now: func() time.Time { return now }})
	perSecond := eventsPerProcessor * runtime.GOMAXPROCS(0)
	registry.Active("flood", now)
	if wait := budget.pace("flood", 100*perSecond); wait != 0 {
		t.Errorf("alone: got a wait of %s, want none", wait)
	}
	registry.Active("other", now)
	for _, c := range []struct {
		events   int
		min, max time.Duration
	}{
		{perSecond / 20, 0, 0},
		{perSecond, 900 * time.Millisecond, time.Second},
		{10 * perSecond, 10 * time.Second, 11 * time.Second},
		{1, time.Second, time.Second}, // of a hub that has few
		{100 * perSecond, 30 * time.Second, eventsDebt * 2 * time.Second},
	} {
		if wait := budget.pace("flood", c.events); wait < c.min || wait > c.max {
			t.Errorf("%d events: got a wait of %s, want %s to %s", c.events, wait, c.min, c.max)
		}
	}
	if wait := budget.pace("other", 1); wait != 0 {
		t.Errorf("the other organization: got a wait of %s, want none", wait)
	}

	sh := NewShard(Config{Ownership: ownedByPrefix{}, Metrics: NewMetrics(nil)})
	for range 2 {
		sh.Observe("all-aaaa-aaaa-aaa2", presence.Observation{})
	}
	s, it, _ := sh.next()
	s.wait = 20 * time.Millisecond
	sh.finish(t.Context(), s, it, 0, nil)
	if _, _, waits := sh.next(); waits {
		t.Error("the hub has its next turn at once")
	}
	for waits := false; !waits; _, _, waits = sh.next() {
		time.Sleep(time.Millisecond) // the timer of a pause is a real one
	}
}
