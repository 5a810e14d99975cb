package orgfeed

import (
	"slices"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

var everything domain.EventFilter

// Pages of any size, from the ring and from the logs, have the events of all hubs in the order in
// which they were stored, and none of another organization.
func TestPages(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 20})
	hubs := []domain.HubID{}
	for n := range 5 {
		f.add(hubN(n), "org", "site")
		hubs = append(hubs, hubN(n))
	}
	f.add(hubN(9), "other", "site")
	f.append(hubN(0), "a.b", 3)
	_, position := f.pages("org", everything, "", 100) // opens the ring
	for i := range 60 {
		f.append(hubN(i%5), "a.b", 1+i%3)
		f.append(hubN(9), "a.b", 1)
	}
	for _, limit := range []int{1, 2, 7, 50, 500} {
		events, _ := f.pages("org", everything, "", limit)
		f.wantLogs("all pages", events, hubs...)
		if !slices.IsSortedFunc(events, func(a, b event) int { return a.Data.N - b.Data.N }) {
			t.Fatalf("pages of %d: events of one group are not in the order of storing", limit)
		}
		rest, _ := f.pages("org", everything, position, limit)
		if !slices.Equal(events[3:], rest) {
			t.Fatalf("pages of %d after the first: got %d events, want %d", limit, len(rest), len(events)-3)
		}
	}
}

// A reader gets each event once, also when the ring has dropped its next one since it last read.
func TestReaderBehindTheRing(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 10})
	f.add(hubN(1), "org", "site")
	f.add(hubN(2), "org", "site")
	f.append(hubN(1), "a.b", 1)
	_, before := f.pages("org", everything, "", 100)
	r := f.follow(everything, before)
	got := 1
	read := func(limit int) {
		t.Helper()
		for got < f.count {
			<-r.Ready()
			for _, e := range f.next(r, limit) {
				if got++; e.Data.N != got {
					t.Fatalf("got event %d, want %d", e.Data.N, got)
				}
			}
		}
	}
	f.append(hubN(1), "a.b", 4)
	read(3)
	for range 30 {
		f.append(hubN(2), "a.b", 1)
		f.append(hubN(1), "a.b", 2)
	}
	read(7)
	f.append(hubN(2), "a.b", 1)
	read(1)
}

// Filters choose hubs, sites, types and parts. The position of a filtered page is after what was
// filtered out.
func TestFilters(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	var hubs []domain.HubID
	for n := range 12 {
		hub := hubN(n)
		f.add(hub, "org", []string{"north", "south"}[n%2])
		hubs = append(hubs, hub)
		f.append(hub, "channel.observed", 2)
		f.append(hub, "hub.connected", 1)
	}
	siteOf := func(e event) string {
		access, _ := f.Hub(e.HubID)
		return access.SiteID
	}
	for name, try := range map[string]struct {
		filter domain.EventFilter
		has    func(event) bool
	}{
		"a site": {domain.EventFilter{Sites: []string{"north"}}, func(e event) bool {
			return siteOf(e) == "north"
		}},
		"within sites": {
			domain.EventFilter{Within: []string{"south"}, Sites: []string{"north", "south"}},
			func(e event) bool { return siteOf(e) == "south" },
		},
		"within none": {
			domain.EventFilter{Within: []string{"east"}}, func(event) bool { return false },
		},
		"hubs": {domain.EventFilter{Hubs: []domain.HubID{hubN(1), hubN(4)}}, func(e event) bool {
			return e.HubID == hubN(1) || e.HubID == hubN(4)
		}},
		"a type": {domain.EventFilter{Types: []string{"hub.connected"}}, func(e event) bool {
			return e.Type == "hub.connected"
		}},
		"types": {domain.EventFilter{Types: []string{"channel.*"}}, func(e event) bool {
			return e.Type == "channel.observed"
		}},
		"no type": {domain.EventFilter{Types: []string{"chan"}}, func(event) bool { return false }},
	} {
		all, end := f.pages("org", everything, "", 500)
		want := slices.DeleteFunc(all, func(e event) bool { return !try.has(e) })
		got, next := f.pages("org", try.filter, "", 5)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if rest, _ := f.pages("org", everything, next, 5); len(rest) > 0 {
			t.Errorf("%s: after its position got %v, want nothing", name, rest)
		}
		if rest, _ := f.pages("org", try.filter, end, 5); len(rest) > 0 {
			t.Errorf("%s: after the end got %v, want nothing", name, rest)
		}
	}
	for parts := 1; parts <= 16; parts++ {
		var union []event
		for part := 1; part <= parts; part++ {
			got, _ := f.pages("org", domain.EventFilter{Part: part, Parts: parts}, "", 4)
			union = append(union, got...)
		}
		f.wantLogs("union of the parts", union, hubs...)
	}
}

// A reset of a hub's log is a gap for readers that had not read it, and nothing for others. A hub
// that leaves disappears.
func TestResetAndRelease(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	f.add(hubN(1), "org", "site")
	f.add(hubN(2), "org", "site")
	f.append(hubN(1), "a.b", 2) // 1, 2
	_, before := f.pages("org", everything, "", 100)
	f.append(hubN(1), "a.b", 2) // 3, 4
	f.append(hubN(2), "a.b", 1) // 5
	_, after := f.pages("org", everything, "", 100)
	f.add(hubN(1), "org", "site")
	f.append(hubN(1), "a.b", 1) // 6
	for _, ring := range []string{"in the ring", "behind the ring"} {
		got, _ := f.pages("org", everything, after, 100)
		if len(got) != 1 || got[0].Data.N != 6 {
			t.Errorf("%s: a reader that lost nothing: got %v, want event 6", ring, got)
		}
		got, _ = f.pages("org", everything, before, 100)
		isGap := func(e event) bool { return e.Type == domain.EventFeedGap }
		events := slices.DeleteFunc(slices.Clone(got), isGap)
		gaps := slices.DeleteFunc(slices.Clone(got), func(e event) bool { return !isGap(e) })
		if len(gaps) != 1 || gaps[0].HubID != hubN(1) || gaps[0].Data.HubID != hubN(1) ||
			gaps[0].Data.Reason != "log_reset" {
			t.Errorf("%s: got the gaps %v, want one of %s", ring, gaps, hubN(1))
		}
		if len(events) != 2 || events[0].Data.N != 5 || events[1].Data.N != 6 {
			t.Errorf("%s: got %v, want events 5 and 6", ring, events)
		}
		if single, _ := f.pages("org", everything, before, 1); !slices.Equal(single, got) {
			t.Errorf("%s: event by event got %v, want %v", ring, single, got)
		}
		f.dropRings()
	}
	f.release(hubN(2))
	got, _ := f.pages("org", everything, "", 100)
	f.wantLogs("without the released hub", got, hubN(1))
}

// dropRings removes all rings, as when they have had no reader for long.
func (f *Feed) dropRings() {
	f.merges.drop(time.Now().Add(time.Hour))
	f.mu.RLock()
	var all []*ring
	for _, r := range f.rings {
		all = append(all, r)
	}
	f.mu.RUnlock()
	for _, r := range all {
		f.removeIdle(r, time.Now().Add(time.Hour))
	}
}

// Positions of a quiet feed are renewed; positions older than the retention, or malformed, are
// rejected.
func TestPositionsExpire(t *testing.T) {
	t.Parallel()
	var clock streamstest.Clock
	f := start(t, Config{Retention: time.Hour, Now: clock.Now})
	f.add(hubN(1), "org", "site")
	f.append(hubN(1), "a.b", 1)
	_, first := f.pages("org", everything, "", 100)
	position := first
	for range 3 {
		clock.Advance(40 * time.Minute)
		streamstest.Eventually(t, "the position is renewed", func() bool {
			page, err := f.Part(t.Context(), "org", everything, position, 10, 1<<20, 10*time.Millisecond)
			if err != nil {
				t.Fatalf("a client that keeps reading gets %v", err)
			}
			position = page.Next
			p, err := ParsePosition(position, f.groups)
			return err == nil && clock.Now().Sub(p.completeAt()) < 30*time.Minute
		})
	}
	for _, after := range []string{first, position[1:], "AZxB57IAAAAAACoBm3ypjQPcE11f"} {
		want := domain.CodeInvalidRequest
		if after == first {
			want = domain.CodeCursorExpired
		}
		_, err := f.Part(t.Context(), "org", everything, after, 10, 1<<20, 0)
		if err == nil || domain.CodeOf(err) != want {
			t.Errorf("after %q: got %v, want %s", after, err, want)
		}
	}
}

// A reader that begins with the oldest events gets what is left if these expire before it has read
// any. A busy machine answered a request without a position with cursor_expired.
func TestOldestEventsExpireMeanwhile(t *testing.T) {
	t.Parallel()
	var clock streamstest.Clock
	f := start(t, Config{RingEvents: 2, Retention: time.Hour, Now: clock.Now})
	f.add(hubN(1), "org", "site")
	f.append(hubN(1), "a.b", 9)
	f.pages("org", everything, "", 100)
	r, err := f.newReader(t.Context(), "org", everything, "")
	streamstest.Must(t, err)
	defer r.Close()
	clock.Advance(time.Hour)
	if _, err := r.Next(t.Context(), 10); err != nil {
		t.Errorf("Next: got %v, want no error", err)
	}
	position := r.Cursor()
	clock.Advance(2 * time.Hour)
	if _, err := f.newReader(t.Context(), "org", everything, position); domain.CodeOf(err) !=
		domain.CodeCursorExpired {
		t.Errorf("after a position that was handed out: got %v, want cursor_expired", err)
	}
}

// Readers behind the ring share what is read for them, whatever their positions, and each gets
// every event once: also one that is too slow for the others, and those that read while a hub's log
// is reset.
func TestReadersShareACatchUp(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 60})
	var hubs []domain.HubID
	for n := range 6 {
		f.add(hubN(n), "org", "site")
		hubs = append(hubs, hubN(n))
	}
	_, first := f.pages("org", everything, "", 500)
	positions := []string{first}
	for i := range 300 {
		f.append(hubs[i%6], "a.b", 1)
		if i == 3 || i == 40 || i == 200 {
			_, position := f.pages("org", everything, "", 500)
			positions = append(positions, position)
		}
	}
	f.dropRings()
	after := map[string]int{positions[0]: 0, positions[1]: 4, positions[2]: 41, positions[3]: 201}
	var readers []*Reader
	var got []int
	open := func(position string) {
		readers = append(readers, f.follow(everything, position))
		got = append(got, after[position])
	}
	read := func(i, limit int) {
		t.Helper()
		for _, e := range f.next(readers[i], limit) {
			if e.Data.N != got[i]+1 {
				t.Fatalf("reader %d: got event %d, want %d", i, e.Data.N, got[i]+1)
			}
			got[i]++
		}
	}
	for _, position := range append(positions, positions[0], positions[0]) {
		open(position)
	}
	for _, i := range []int{0, 1, 4, 5} {
		read(i, 5)
		if readers[i].catchUp == nil || readers[i].catchUp != readers[0].catchUp {
			t.Errorf("reader %d does not share what reader 0 reads", i)
		}
	}
	for range 400 {
		for i := range readers[1:] {
			read(i+1, 1+5*i)
		}
	}
	for range 400 { // the others have left the catch-up far behind
		read(0, 7)
	}
	for i := range readers {
		if got[i] != 300 {
			t.Errorf("reader %d: got events up to %d, want 300", i, got[i])
		}
	}
	open(positions[1])
	read(6, 30)
	f.add(hubs[0], "org", "site")
	for got[6] < 100 {
		events := f.next(readers[6], 30)
		if len(events) == 0 {
			break
		}
		for _, e := range events {
			switch {
			case e.Type == domain.EventFeedGap && e.HubID == hubs[0] && e.Data.Reason == gapReset:
				got[6] = 100
			case e.HubID == hubs[0]:
				t.Errorf("got event %d of a log that was reset", e.Data.N)
			}
		}
	}
	if got[6] != 100 {
		t.Errorf("no gap after a reset")
	}
}
