package orgfeed

import (
	"testing"

	"hubcloud/domain"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// Each page and each Next reports how many events follow, whether they are in the ring, in the logs
// or partly in both, for all hubs and for those that a filter chooses.
func TestLag(t *testing.T) {
	t.Parallel()
	f := start(t, Config{RingEvents: 20})
	for n := range 4 {
		f.add(hubN(n), "org", "site")
	}
	f.add(hubN(9), "other", "site")
	for n := range 4 {
		f.append(hubN(n), "a.b", 10)
		if _, err := f.journals.Append(t.Context(), hubN(n), journal.AnyEnd, []journal.Record{
			{Kind: journal.KindCommand, Payload: []byte(`{}`)},
		}); err != nil {
			t.Fatal(err)
		}
		f.append(hubN(9), "a.b", 3)
	}
	check := func(filter domain.EventFilter, after string, limit, total int) {
		t.Helper()
		for read := 0; ; {
			page, err := f.Part(t.Context(), "org", filter, after, limit, 1<<20, 0)
			streamstest.Must(t, err)
			read += len(page.Events)
			if int(page.Lag.Behind) != total-read || page.Lag.At.IsZero() {
				t.Fatalf(
					"page of %d, filter %+v: lag is %+v after %d of %d events", limit, filter,
					page.Lag, read, total,
				)
			}
			if after = page.Next; !page.HasMore {
				return
			}
		}
	}
	two := domain.EventFilter{Hubs: []domain.HubID{hubN(1), hubN(2)}}
	for _, limit := range []int{1, 7, 40} {
		check(everything, "", limit, 40)
		check(two, "", limit, 20)
	}
	_, end := f.pages("org", everything, "", 500)
	for n := range 4 {
		f.append(hubN(n), "a.b", 4) // fit into the ring
	}
	check(everything, end, 3, 16)
	check(two, end, 3, 8)
	for n := range 4 {
		f.append(hubN(n), "a.b", 4) // do not fit any more
	}
	check(everything, end, 3, 32)
	check(two, end, 3, 16)

	r := f.follow(everything, end)
	for read := 0; read < 32; {
		read += len(f.next(r, 5))
		if lag := r.Lag(t.Context()); int(lag.Behind) != 32-read {
			t.Fatalf("Reader.Lag after %d of 32 events: got %d", read, lag.Behind)
		}
	}
}

// What an organization's hubs store after a mark is counted, also without readers, and other
// organizations' events are not.
func TestCounted(t *testing.T) {
	t.Parallel()
	f := start(t, Config{})
	f.add(hubN(1), "org", "site")
	f.add(hubN(2), "org", "site")
	f.add(hubN(9), "other", "site")
	mark := f.Counted("org")
	f.append(hubN(1), "a.b", 5)
	f.append(hubN(9), "a.b", 3)
	f.append(hubN(2), "a.b", 2)
	if _, err := f.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := f.Counted("org") - mark; got != 7 {
		t.Errorf("Counted without a reader: got %d events, want 7", got)
	}
	page, err := f.Part(t.Context(), "org", everything, "", 3, 1<<20, 0)
	streamstest.Must(t, err)
	f.append(hubN(1), "a.b", 4)
	f.append(hubN(9), "a.b", 1)
	if _, err := f.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := page.Lag.Behind + f.Counted("org") - page.Lag.Mark; got != 8 {
		t.Errorf("a reader that stopped after 3 of 7 events is %d behind after 4 more, want 8", got)
	}
}
