package orgfeed

import (
	"context"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// The position moved before the read that decides on a feed.gap could fail: the next call then left
// the gap out, and returned no error either.
func TestGapAfterFailedRead(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	f.add(hubN(1), "org", "site")
	f.append(hubN(1), "a.b", 1)
	_, before := f.pages("org", everything, "", 100)
	r := f.follow(everything, before)
	f.append(hubN(1), "a.b", 1)
	f.add(hubN(1), "org", "site")
	failing, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 {
		// No read is needed if the reader has got all of it before: then the gap comes at once.
		if events, err := r.Next(failing, 10); err == nil {
			if len(events) != 1 || !strings.Contains(string(events[0].Frame), domain.EventFeedGap) {
				t.Errorf("Next while reads fail: got %d events, want the gap or an error", len(events))
			}
			return
		}
	}
	if events := f.next(r, 10); len(events) != 1 || events[0].Type != domain.EventFeedGap {
		t.Fatalf("Next: got %v, want the gap", events)
	}
}

// A feed.gap came for each entry of a log before its reset, if the time of the last one was not
// known when the first one was read.
func TestOneGapForAReset(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	f.add(hubN(1), "org", "site")
	f.append(hubN(1), "a.b", 1)
	_, before := f.pages("org", everything, "", 100)
	r := f.follow(everything, before)
	f.append(hubN(1), "a.b", 3)
	f.add(hubN(1), "org", "site") // resets the hub
	access, _ := f.cfg.Hubs.Hub(hubN(1))
	f.former.Store(hubN(1), formerLog{access.Epoch.ID, 0})
	f.append(hubN(1), "c.d", 1)
	var types []string
	for !slices.Contains(types, "c.d") {
		for _, e := range f.next(r, 10) {
			types = append(types, e.Type)
		}
	}
	if want := []string{domain.EventFeedGap, "c.d"}; !slices.Equal(types, want) {
		t.Errorf("got %q, want %q", types, want)
	}
}

// A feed.gap comes once, and at the same place, whatever the process that reads remembers of the
// reader: a page that begins with more gaps than it has room for goes on behind those it has, and
// other filters bring no gap again.
func TestGapsHaveAPlace(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	const hubs = 4
	for n := range hubs {
		f.add(hubN(n), "org", "site")
	}
	for range 3 {
		for n := range hubs {
			f.append(hubN(n), "a.b", 1)
		}
	}
	first, err := f.Part(t.Context(), "org", everything, "", 1, 1<<20, 0)
	streamstest.Must(t, err)
	for n := range hubs - 1 { // the last one stays
		f.add(hubN(n), "org", "site")
		f.append(hubN(n), "hub.log_reset", 1)
	}
	f.dropRings()
	want, _ := f.pages("org", everything, first.Next, 100)
	gaps := map[domain.HubID]string{}
	for _, e := range want {
		if e.Type == domain.EventFeedGap {
			gaps[e.HubID] += e.Cursor
		}
	}
	if len(want) != 2*(hubs-1)+3 || len(gaps) != hubs-1 {
		t.Fatalf("got %v, want a gap and an event of each reset hub, and three of the other", want)
	}
	types := domain.EventFilter{Types: []string{"a.*", "hub.*"}}
	for name, limit := range map[string]int{"one": 1, "two": 2, "all": 100} {
		var got []event
		for after, pages := first.Next, 0; ; pages++ {
			filter := everything
			if pages%2 == 1 {
				filter = types
			}
			page, err := f.Part(t.Context(), "org", filter, after, limit, 1<<20, 0)
			streamstest.Must(t, err)
			for _, e := range page.Events {
				got = append(got, decode(t, e))
			}
			if after = page.Next; !page.HasMore {
				break
			}
			if pages > 2*len(want) {
				t.Fatalf("pages of %s: no end after %d: %v", name, pages, got)
			}
			if limit < 100 || pages == 1 {
				f.dropRings() // as another process would read
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %s: got %v, want %v", name, got, want)
		}
	}
	for _, ring := range []bool{true, false} {
		if !ring {
			f.dropRings()
		}
		var got []event
		for position := first.Next; len(got) < len(want); {
			r := f.follow(everything, position)
			events, err := r.Next(t.Context(), 2)
			if err != nil || len(events) == 0 {
				t.Fatalf("ring %t: Next after %d events: %d, %v", ring, len(got), len(events), err)
			}
			for _, e := range events {
				got, position = append(got, decode(t, e)), e.Cursor
			}
			r.Close()
		}
		if !slices.Equal(got, want) {
			t.Errorf("ring %t: a reader that connects again and again got %v, want %v", ring, got, want)
		}
	}
}
