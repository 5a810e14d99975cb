package hublog

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// follow collects what a group gives, by hub, until every hub has its last number.
func follow(t *testing.T, g *Group, limit int, last map[domain.HubID]int) map[domain.HubID][]int {
	t.Helper()
	got := map[domain.HubID][]int{}
	missing := len(last)
	timeout := time.After(time.Minute)
	for missing > 0 {
		hub, events, err := g.Next(t.Context(), limit)
		if err != nil {
			t.Errorf("%s: %v", hub, err)
			return got
		}
		if len(events) > limit {
			t.Errorf("%d events at once, at most %d were asked for", len(events), limit)
		}
		if len(events) > 0 {
			got[hub] = append(got[hub], numbers(t, events)...)
			if got[hub][len(got[hub])-1] == last[hub] {
				missing--
			}
			continue
		}
		select {
		case <-g.Ready():
		case <-timeout:
			t.Errorf("no more than %v in time", got)
			return got
		}
	}
	return got
}

// One goroutine reads a hundred hubs that send at once: each log in its order, with nothing left
// out or repeated, also where a ring is too short to hold what a slow reader is yet to get.
func TestGroupFollowsManyLogs(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 20})
	const hubs, events = 100, 60
	g := f.NewGroup()
	defer g.Close()
	goroutines := runtime.NumGoroutine()
	last := map[domain.HubID]int{}
	for i := range hubs {
		hub := domain.HubID(fmt.Sprintf("hub-aaaa-bbbb-%04d", i))
		f.begin(hub, domain.Epoch{ID: domain.NewEpochID(uint32(i + 1))})
		last[hub] = events
		if err := g.Follow(t.Context(), hub, ""); err != nil {
			t.Fatal(err)
		}
	}
	streamstest.Eventually(
		t, "no goroutine a hub is left",
		func() bool { return runtime.NumGoroutine() < goroutines+hubs/2 },
	)
	var wg sync.WaitGroup
	for hub := range last {
		wg.Go(func() {
			var seq uint64
			for n := 1; n <= events; n += 5 {
				seq = f.append(hub, seq, n, 5)
			}
		})
	}
	for hub, got := range follow(t, g, 7, last) {
		if !slices.Equal(got, upTo(1, events)) {
			t.Errorf("%s: got %v", hub, got)
		}
	}
	wg.Wait()
}

// A hub that says much does not keep the others from their turn.
func TestGroupTakesTurns(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	const hubB = domain.HubID("hub-bbbb-bbbb-bbbb")
	f.begin(hubB, domain.Epoch{ID: domain.NewEpochID(0xb)})
	g := f.NewGroup()
	defer g.Close()
	for _, hub := range []domain.HubID{hubA, hubB} {
		if err := g.Follow(t.Context(), hub, ""); err != nil {
			t.Fatal(err)
		}
	}
	f.append(hubA, 0, 1, 200)
	f.append(hubB, 0, 1, 1)
	f.page(hubA, "", 1) // the feed has brought what a page shows
	f.page(hubB, "", 1)
	first, _, err := g.Next(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := g.Next(t.Context(), 10)
	if err != nil || first == second {
		t.Errorf("%s has two turns, %v", first, err)
	}
}

// A reader that comes back names where it was in each log; a log that was begun anew ends alone,
// and can be followed again.
func TestGroupGoesOn(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 3)
	g := f.NewGroup()
	defer g.Close()
	if err := g.Follow(t.Context(), hubA, f.page(hubA, "", 1).Next); err != nil {
		t.Fatal(err)
	}
	if got := follow(t, g, 10, map[domain.HubID]int{hubA: 3}); !slices.Equal(
		got[hubA], upTo(2, 3),
	) {
		t.Errorf("got %v", got)
	}
	if position := g.Cursor(hubA); position != f.page(hubA, "", 10).Next {
		t.Errorf("the position is %q", position)
	}
	if position := g.Cursor("hub-none-none-none"); position != "" {
		t.Errorf("a log that is not followed is at %q", position)
	}
	f.begin(hubA, domain.Epoch{ID: domain.NewEpochID(0xc), After: last})
	for {
		<-g.Ready()
		hub, _, err := g.Next(t.Context(), 10)
		if hub == hubA && codeOf(err) == domain.CodeCursorExpired {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Follow(t.Context(), hubA, ""); err != nil {
		t.Fatal(err)
	}
	f.append(hubA, last, 4, 1)
	if got := follow(t, g, 10, map[domain.HubID]int{hubA: 4}); !slices.Equal(got[hubA], []int{4}) {
		t.Errorf("got %v", got)
	}
	g.Leave(hubA)
	g.Leave(hubA)
	if hub, events, err := g.Next(t.Context(), 10); len(events) > 0 || err != nil {
		t.Errorf("%s gives %v, %v", hub, events, err)
	}
}
