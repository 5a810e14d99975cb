package orgfeed

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

// fixture is a Feed over a real broker, with a directory that a test changes.
type fixture struct {
	*Feed
	tb       testing.TB
	logs     *feed.Logs
	journals *journal.Journal

	mu   sync.Mutex
	hubs map[domain.HubID]domain.HubAccess
	// last is the sequence of the last event of each hub's log, and count the events appended.
	last  map[domain.HubID]uint64
	count int
}

func (f *fixture) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	access, ok := f.hubs[hub]
	return access, ok
}

func (f *fixture) HubsOf(org string) (ids []domain.HubID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, access := range f.hubs {
		if access.OrgID == org {
			ids = append(ids, id)
		}
	}
	return ids
}

func (f *fixture) Refresh(context.Context) error { return nil }

func start(tb testing.TB, cfg Config) *fixture {
	tb.Helper()
	cfg.Retention = cmp.Or(cfg.Retention, time.Hour)
	conns := streamstest.Start(tb)
	f := &fixture{
		tb: tb, hubs: map[domain.HubID]domain.HubAccess{}, last: map[domain.HubID]uint64{},
	}
	f.journals, _ = viewstest.Open(tb, conns, cfg.Retention)
	var err error
	f.logs, err = feed.New(conns, feed.Config{
		Journal: f.journals, Retention: cfg.Retention, Logger: slog.New(slog.DiscardHandler),
		Epoch: func(hub domain.HubID) (domain.Epoch, bool) {
			access, ok := f.Hub(hub)
			return access.Epoch, ok
		},
	})
	streamstest.Must(tb, err)
	cfg.Logs, cfg.Hubs, cfg.Journal = f.logs, f, f.journals
	if f.Feed, err = New(cfg); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(f.logs.Close)
	tb.Cleanup(f.Close)
	streamstest.Run(tb, "logs", f.logs.Run)
	streamstest.Run(tb, "feed", f.Run)
	return f
}

func hubN(n int) domain.HubID { return domain.HubID(fmt.Sprintf("hub-%04d-aaaa-aaaa", n)) }

// add adds a hub to an organization, with a new epoch of its log after what the log has.
func (f *fixture) add(hub domain.HubID, org, site string) {
	f.tb.Helper()
	after, err := f.logs.LastSequence(f.tb.Context(), hub)
	streamstest.Must(f.tb, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	id := uint32(len(f.hubs)+1)<<16 | uint32(after) + 1
	f.hubs[hub] = domain.HubAccess{
		OrgID: org, SiteID: site, Epoch: domain.Epoch{ID: domain.NewEpochID(id), After: after},
	}
}

func (f *fixture) release(hub domain.HubID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.hubs, hub)
}

// append appends events of a type to a hub's log. Each has a number of its own.
func (f *fixture) append(hub domain.HubID, typ string, count int) {
	f.tb.Helper()
	access, ok := f.Hub(hub)
	if !ok {
		f.tb.Fatalf("hub %s has no organization", hub)
	}
	records := make([]journal.Record, count)
	for i := range records {
		f.count++
		payload, err := json.Marshal(domain.HubEvent{
			Type: typ, HubID: hub, Time: domain.FormatTime(time.Unix(int64(f.count), 0)),
			Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, f.count)),
		})
		streamstest.Must(f.tb, err)
		records[i] = journal.Record{
			Kind: journal.KindHubEvent, Payload: payload, EpochID: access.Epoch.ID,
			OrgID: access.OrgID, OwnLog: "log-1", Through: uint64(f.count),
		}
	}
	last, err := f.logs.Append(f.tb.Context(), hub, f.last[hub], records)
	if err != nil {
		f.tb.Fatalf("append %d events to %s: %v", count, hub, err)
	}
	f.last[hub] = last
}

// event is an event as readers get it.
type event struct {
	Cursor string
	Type   string
	HubID  domain.HubID `json:"hub_id"`
	Data   struct {
		N      int
		HubID  domain.HubID `json:"hub_id"`
		Reason string
	}
}

func decode(tb testing.TB, e domain.EncodedEvent) (got event) {
	tb.Helper()
	if err := json.Unmarshal(e.Envelope, &got); err != nil {
		tb.Fatalf("envelope %q: %v", e.Envelope, err)
	}
	want := "id: " + e.Cursor + "\nevent: " + got.Type + "\ndata: " + string(e.Envelope) + "\n\n"
	if len(e.Frame) > 0 && string(e.Frame) != want {
		tb.Fatalf("frame is %q, want %q", e.Frame, want)
	}
	return got
}

// pages reads pages of at most limit events until none is left, and returns the last position.
func (f *fixture) pages(
	org string, filter domain.EventFilter, after string, limit int,
) (events []event, next string) {
	f.tb.Helper()
	for {
		page, err := f.Part(f.tb.Context(), org, filter, after, limit, 1<<20, 0)
		if err != nil {
			f.tb.Fatalf("page after %q: %v", after, err)
		}
		if len(page.Events) > limit || len(page.Events) < limit && page.HasMore && len(filter.Types) == 0 {
			f.tb.Fatalf("page of %d: got %d events, has more %v", limit, len(page.Events), page.HasMore)
		}
		for _, e := range page.Events {
			events = append(events, decode(f.tb, e))
		}
		if n := len(page.Events); n > 0 && page.HasMore && page.Next != page.Events[n-1].Cursor {
			f.tb.Fatalf("page: next is %q, want that of the last event", page.Next)
		}
		if after = page.Next; !page.HasMore {
			return events, after
		}
	}
}

// follow returns a reader of "org" that is closed when the test ends.
func (f *fixture) follow(filter domain.EventFilter, after string) *Reader {
	f.tb.Helper()
	r, err := f.Follow(f.tb.Context(), "org", filter, after)
	if err != nil {
		f.tb.Fatalf("Follow after %q: %v", after, err)
	}
	f.tb.Cleanup(r.Close)
	return r
}

// next returns the next events of a reader.
func (f *fixture) next(r *Reader, limit int) (got []event) {
	f.tb.Helper()
	events, err := r.Next(f.tb.Context(), limit)
	if err != nil {
		f.tb.Fatalf("Next: %v", err)
	}
	for _, e := range events {
		got = append(got, decode(f.tb, e))
	}
	return got
}

// byHub returns the numbers of the events of each hub.
func byHub(events []event) map[domain.HubID][]int {
	all := map[domain.HubID][]int{}
	for _, e := range events {
		all[e.HubID] = append(all[e.HubID], e.Data.N)
	}
	return all
}

// wantLogs fails the test unless the events are exactly those of the hubs' logs, hub by hub.
func (f *fixture) wantLogs(what string, got []event, hubs ...domain.HubID) {
	f.tb.Helper()
	want := map[domain.HubID][]int{}
	for _, hub := range hubs {
		for after := ""; ; {
			page, err := f.logs.Page(f.tb.Context(), hub, after, 500)
			streamstest.Must(f.tb, err)
			for _, e := range page.Events {
				want[hub] = append(want[hub], decode(f.tb, e).Data.N)
			}
			if after = page.Next; !page.HasMore {
				break
			}
		}
	}
	if logs := byHub(got); !maps.EqualFunc(logs, want, slices.Equal[[]int]) {
		f.tb.Fatalf("%s: got %v, want %v", what, logs, want)
	}
}
