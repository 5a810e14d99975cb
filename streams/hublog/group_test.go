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

// follow returns the numbers of the events that a group returns, by hub. It reads until it has the
// last event of each hub.
func follow(t *testing.T, g *Group, limit int, last map[domain.HubID]int) map[domain.HubID][]int {
	t.Helper()
	got := map[domain.HubID][]int{}
	missing := len(last)
	timeout := time.After(time.Minute)
	for missing > 0 {
		hub, events, err := g.Next(t.Context(), limit)
		if err != nil {
			t.Errorf("Next: %s: %v", hub, err)
			return got
		}
		if len(events) > limit {
			t.Errorf("Next returned %d events, want at most %d", len(events), limit)
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
			t.Errorf("got only %v after a minute, want up to %v", got, last)
			return got
		}
	}
	return got
}

// One goroutine reads a hundred hubs that send at once. It gets each log in order, without gaps and
// repetitions, although the rings are too short for the events that it has not read yet.
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
		t, "the goroutines of Follow have ended",
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
			t.Errorf("%s: got %v, want 1 to %d", hub, got, events)
		}
	}
	wg.Wait()
}

// A hub with many events does not delay the events of other hubs.
func TestGroupAlternatesBetweenHubs(t *testing.T) {
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
	f.page(hubA, "", 1) // returns once the feed has brought the events
	f.page(hubB, "", 1)
	first, _, err := g.Next(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	second, _, err := g.Next(t.Context(), 10)
	if err != nil || first == second {
		t.Errorf("Next returned events of %s, then of %s (%v); want both hubs", first, second, err)
	}
}

// A group continues from a cursor. When a new epoch begins, only the reader of that log ends, and
// the group can follow the log again.
func TestGroupContinues(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	last := f.append(hubA, 0, 1, 3)
	g := f.NewGroup()
	defer g.Close()
	if err := g.Follow(t.Context(), hubA, f.page(hubA, "", 1).Next); err != nil {
		t.Fatal(err)
	}
	got := follow(t, g, 10, map[domain.HubID]int{hubA: 3})
	if !slices.Equal(got[hubA], upTo(2, 3)) {
		t.Errorf("from the first event's cursor: got %v, want [2 3]", got)
	}
	if got, want := g.Cursor(hubA), f.page(hubA, "", 10).Next; got != want {
		t.Errorf("Cursor = %q, want %q", got, want)
	}
	if got := g.Cursor("hub-none-none-none"); got != "" {
		t.Errorf(`Cursor of a log that is not followed = %q, want ""`, got)
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
	got = follow(t, g, 10, map[domain.HubID]int{hubA: 4})
	if !slices.Equal(got[hubA], []int{4}) {
		t.Errorf("in the new epoch: got %v, want [4]", got)
	}
	g.Leave(hubA)
	g.Leave(hubA)
	if hub, events, err := g.Next(t.Context(), 10); len(events) > 0 || err != nil {
		t.Errorf("Next after Leave = %s, %v, %v; want no events", hub, events, err)
	}
}
