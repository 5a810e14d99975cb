package feed

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/views/viewstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, streamstest.Leaks()...) }

const hubA = domain.HubID("hub-aaaa-aaaa-aaaa")

// fixture is Logs over a real broker, with epochs that a test can change.
type fixture struct {
	*Logs
	conns   *streams.Conns
	journal *testJournal
	tb      testing.TB

	mu     sync.Mutex
	epochs map[domain.HubID]domain.Epoch
}

// testJournal is the broker's journal. While deaf is set, tails get no commits.
type testJournal struct {
	Journal
	deaf atomic.Bool
}

func (j *testJournal) Subscribe(f func(group int, commits []journal.Commit)) {
	j.Journal.Subscribe(func(group int, commits []journal.Commit) {
		if !j.deaf.Load() {
			f(group, commits)
		}
	})
}

func (f *fixture) epochOf(hub domain.HubID) (domain.Epoch, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	epoch, ok := f.epochs[hub]
	return epoch, ok
}

func (f *fixture) begin(hub domain.HubID, epoch domain.Epoch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.epochs[hub] = epoch
}

func start(tb testing.TB, cfg Config) *fixture {
	tb.Helper()
	return startOn(tb, streamstest.Start(tb), cfg)
}

// startOn returns Logs that run until the test ends.
func startOn(tb testing.TB, conns *streams.Conns, cfg Config) *fixture {
	tb.Helper()
	cfg.Retention = cmp.Or(cfg.Retention, time.Hour)
	journals, _ := viewstest.Open(tb, conns, cfg.Retention)
	f := &fixture{
		conns: conns, tb: tb,
		epochs:  map[domain.HubID]domain.Epoch{hubA: {ID: domain.NewEpochID(0xa)}},
		journal: &testJournal{Journal: journals},
	}
	cfg.Journal, cfg.Logger, cfg.Epoch = f.journal, streamstest.Logger(), f.epochOf
	logs, err := New(conns, cfg)
	streamstest.Must(tb, err)
	f.Logs = logs
	tb.Cleanup(logs.Close)
	streamstest.Run(tb, "logs", logs.Run)
	return f
}

// record returns an event with a number in its data.
func record(hub domain.HubID, epoch domain.EpochID, n int) journal.Record {
	payload, err := json.Marshal(domain.HubEvent{
		Type: "channel.observed", HubID: hub, Time: domain.FormatTime(time.Unix(int64(n), 0)),
		Data: json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
	})
	if err != nil {
		panic(err)
	}
	return journal.Record{
		Kind: journal.KindHubEvent, Payload: payload, EpochID: epoch, OwnLog: "log-1",
		Through: uint64(n),
	}
}

// event returns an event of hubA's first epoch with a number in its data.
func event(n int) journal.Record { return record(hubA, domain.NewEpochID(0xa), n) }

// append appends count events with the numbers from n on, if expected is the sequence of the last
// event. It returns the new last sequence.
func (f *fixture) append(hub domain.HubID, expected uint64, n, count int) uint64 {
	f.tb.Helper()
	epoch, _ := f.epochOf(hub)
	records := make([]journal.Record, count)
	for i := range records {
		records[i] = record(hub, epoch.ID, n+i)
	}
	last, err := f.Append(f.tb.Context(), hub, expected, records)
	if err != nil {
		f.tb.Fatalf("append %d events from %d on: %v", count, n, err)
	}
	return last
}

func (f *fixture) command(hub domain.HubID) uint64 {
	f.tb.Helper()
	seq, err := f.AppendCommand(f.tb.Context(), hub, []byte(`{}`))
	if err != nil {
		f.tb.Fatalf("append a command: %v", err)
	}
	return seq
}

// awaitView waits until the hub's stream has everything up to a sequence.
func (f *fixture) awaitView(hub domain.HubID, seq uint64) {
	f.tb.Helper()
	viewstest.Await(f.tb, f.conns, hub, seq)
}

func (f *fixture) page(hub domain.HubID, after string, limit int) domain.EventPage {
	f.tb.Helper()
	page, err := f.Page(f.tb.Context(), hub, after, limit)
	if err != nil {
		f.tb.Fatalf("page after %q: %v", after, err)
	}
	return page
}

// all returns hubA's events after a cursor, read in pages, and the cursor of the log's end.
func (f *fixture) all(after string, limit int) (events []domain.EncodedEvent, end string) {
	f.tb.Helper()
	for {
		page := f.page(hubA, after, limit)
		n := len(page.Events)
		if page.HasMore && (n != limit || page.Next != page.Events[n-1].Cursor) {
			f.tb.Fatalf("page of %d after %q: has more after %d events, next is %q", limit, after, n, page.Next)
		}
		events = append(events, page.Events...)
		if after = page.Next; !page.HasMore {
			return events, after
		}
	}
}

// want fails the test unless the page after a cursor has the events of these numbers.
func (f *fixture) want(what, after string, want []int) {
	f.tb.Helper()
	if got := numbers(f.tb, f.page(hubA, after, 500).Events); !slices.Equal(got, want) {
		f.tb.Errorf("%s: got events %v, want %v", what, got, want)
	}
}

// wantError fails the test unless a page after a cursor is rejected with a code.
func (f *fixture) wantError(what, after string, want domain.Code) {
	f.tb.Helper()
	if _, err := f.Page(f.tb.Context(), hubA, after, 10); codeOf(err) != want {
		f.tb.Errorf("page after %s: %v, want %s", what, err, want)
	}
}

// follow returns a reader of a hub that is closed when the test ends.
func (f *fixture) follow(hub domain.HubID, after string) *Reader {
	f.tb.Helper()
	r, err := f.Follow(f.tb.Context(), hub, after)
	if err != nil {
		f.tb.Fatalf("follow after %q: %v", after, err)
	}
	f.tb.Cleanup(r.Close)
	return r
}

// number returns the number in an event, and checks that frame, envelope and cursor agree.
func number(tb testing.TB, e domain.EncodedEvent) int {
	tb.Helper()
	var envelope struct {
		Cursor string
		Type   string
		Data   struct{ N int }
	}
	if err := json.Unmarshal(e.Envelope, &envelope); err != nil {
		tb.Fatalf("envelope %q: %v", e.Envelope, err)
	}
	if envelope.Cursor != e.Cursor {
		tb.Fatalf("envelope has cursor %q, the event %q", envelope.Cursor, e.Cursor)
	}
	want := fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", e.Cursor, envelope.Type, e.Envelope)
	if string(e.Frame) != want {
		tb.Fatalf("frame is %q, want %q", e.Frame, want)
	}
	return envelope.Data.N
}

func numbers(tb testing.TB, events []domain.EncodedEvent) []int {
	tb.Helper()
	all := make([]int, 0, len(events))
	for _, e := range events {
		all = append(all, number(tb, e))
	}
	return all
}

// upTo returns from, from+1, … up to to.
func upTo(from, to int) []int {
	all := []int{}
	for n := from; n <= to; n++ {
		all = append(all, n)
	}
	return all
}

// codeOf returns the code of an error, "" for nil.
func codeOf(err error) domain.Code {
	if err == nil {
		return ""
	}
	return domain.CodeOf(err)
}
