package faults

import (
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// TestKill kills the service repeatedly under traffic. While it is stopped, hub logs, which are views
// of the journal, are removed, truncated and damaged at random. What was acknowledged to a hub is
// stored once, in order and under the same cursor, a consumer that continues after its last cursor
// misses and repeats nothing, the first page after each start is complete, and the times in the
// journal grow. The steps of the work at which a kill hits are those of the tests of streams/views,
// and those of the journal are test/sim's.
func TestKill(t *testing.T) {
	t.Parallel()
	const hubs = 4
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	load := newViewLoad(t, s, harness.NewTenant(t, s, "Kill"), hubs)
	store := filepath.Join(s.Dir, "nats", "jetstream")
	known := make([][]harness.Event, hubs)
	for range *kills {
		harness.AnyMoment(500*time.Millisecond, 2*time.Second)
		s.Kill()
		lost := rand.IntN(hubs)
		damageView(t, store, load.senders[lost].hub.ID, 0)
		damageView(t, store, load.senders[(lost+1+rand.IntN(hubs-1))%hubs].hub.ID, -1)
		s.Begin()
		load.checkBeginnings(known)
	}
	for _, h := range load.senders {
		before := h.progress.Load()
		streamstest.Eventually(t, h.hub.ID+" goes on after the last kill", func() bool {
			return h.progress.Load() > before
		})
	}
	load.check(known)
	checkJournal(t, s)
}

// viewLoad is hubs that send and readers of each kind during faults of views.
type viewLoad struct {
	t                        *testing.T
	tenant                   *harness.Tenant
	senders                  []*sender
	readers                  [][]*follower
	starts                   []string
	stopSending, stopReading chan struct{}
	sending, reading         sync.WaitGroup
}

func newViewLoad(
	t *testing.T, s *harness.Service, tenant *harness.Tenant, hubs int,
) *viewLoad {
	t.Helper()
	l := &viewLoad{
		t: t, tenant: tenant, stopSending: make(chan struct{}), stopReading: make(chan struct{}),
	}
	for range hubs {
		hub := adopted(t, s, tenant)
		hub.Disconnect()
		feedStart := feedPosition(tenant, hub.ID)
		start := tenant.Head(hub.ID)
		l.starts = append(l.starts, start)
		l.senders = append(l.senders, &sender{hub: hub, pace: 100 * time.Millisecond})
		l.readers = append(l.readers, []*follower{
			{client: tenant.Client, hub: hub.ID, cursor: start, unavailable: true},
			{client: tenant.Client, hub: hub.ID, cursor: start},
			{client: tenant.Client, hub: hub.ID, feed: true, unavailable: true},
			{client: tenant.Client, hub: hub.ID, feed: true, cursor: feedStart},
		})
	}
	for i, h := range l.senders {
		l.sending.Go(func() { h.run(l.stopSending) })
		for n, f := range l.readers[i] {
			if n%2 == 0 {
				l.reading.Go(func() { f.run(l.stopReading) })
			} else {
				l.reading.Go(func() { f.runStream(l.stopReading) })
			}
		}
	}
	return l
}

// checkBeginnings checks that the logs begin with the events that are known, and makes more of them
// known.
func (l *viewLoad) checkBeginnings(known [][]harness.Event) {
	l.t.Helper()
	for i, h := range l.senders {
		events := beginning(l.tenant.Client, h.hub.ID, len(known[i]))
		same(l.t, h.hub.ID+" after a start", events[:len(known[i])], known[i])
		known[i] = events
	}
}

// check stops the load and checks that the logs begin with the events that are known, that nothing
// is lost, doubled or out of order, and that each reader got everything.
func (l *viewLoad) check(known [][]harness.Event) {
	t := l.t
	t.Helper()
	close(l.stopSending)
	l.sending.Wait()
	for i, h := range l.senders {
		awaitOffline(t, l.tenant, h.hub.ID)
		stored := l.tenant.AllEvents(h.hub.ID, "")
		same(t, h.hub.ID+" at the end", stored[:len(known[i])], known[i])
		last := numbersOf(t, h.hub.ID+" stored", stored)
		if last < h.acked || h.acked == 0 {
			t.Errorf("hub %s: acknowledged through %d, stored through %d", h.hub.ID, h.acked, last)
		}
		for n := range stored {
			at, err := feed.DecodeCursor(stored[n].Cursor)
			harness.Must(t, err)
			if n == 0 {
				continue
			}
			before, _ := feed.DecodeCursor(stored[n-1].Cursor)
			if at.Seq <= before.Seq || at.Stored.Before(before.Stored) {
				t.Errorf("hub %s: %+v follows %+v", h.hub.ID, at, before)
			}
		}
	}
	close(l.stopReading)
	l.reading.Wait()
	for i, h := range l.senders {
		want := l.tenant.AllEvents(h.hub.ID, l.starts[i])
		for n, how := range []string{"page", "stream", "page of the feed", "stream of the feed"} {
			same(t, h.hub.ID+", by "+how, fromHead(l.readers[i][n].got, want), want)
		}
	}
}

// awaitOffline waits until a hub is offline: its last event is stored then.
func awaitOffline(t *testing.T, tenant *harness.Tenant, hub string) {
	t.Helper()
	streamstest.Eventually(t, hub+" is offline", func() bool {
		answer, err := tenant.Try(http.MethodGet, "/hubs/"+hub, nil)
		if err != nil || answer.Status != http.StatusOK {
			return false
		}
		var got struct{ Connection struct{ Status string } }
		answer.JSON(t, &got)
		return got.Connection.Status == "offline"
	})
}

// beginning reads the oldest events of a hub's log: at least n, and a page more. The hub may send
// faster than this reads.
func beginning(client *harness.Client, hub string, n int) (events []harness.Event) {
	client.T.Helper()
	for more, after := true, ""; more; {
		page := client.Events(hub, after, 500, 0)
		more, after = page.HasMore && len(events) < n, page.NextCursor
		events = append(events, page.Data...)
	}
	if len(events) < n {
		client.T.Fatalf("hub %s: got %d events, want at least %d", hub, len(events), n)
	}
	return events
}

// feedPosition returns a cursor of the organization's feed, filtered by a new hub: a stream without
// a cursor would begin with the next event.
func feedPosition(tenant *harness.Tenant, hub string) string {
	tenant.T.Helper()
	var page harness.Page
	tenant.Must(http.MethodGet, "/events?limit=1&hub_id="+hub, nil, http.StatusOK).
		JSON(tenant.T, &page)
	return page.NextCursor
}

// fromHead returns what a reader got from the first of the wanted events on: readers of the feed
// begin before them.
func fromHead(got, want []harness.Event) []harness.Event {
	if len(want) == 0 {
		return got
	}
	i := slices.IndexFunc(got, func(e harness.Event) bool { return e.Cursor == want[0].Cursor })
	return got[max(i, 0):]
}

// damages are what becomes of a view while its server is stopped.
var damages = []struct {
	name   string
	damage func(stream, block string, size int64) error
}{
	{"removed", func(stream, _ string, _ int64) error { return os.RemoveAll(stream) }},
	{"truncated", func(_, block string, size int64) error {
		return os.Truncate(block, rand.Int64N(size+1))
	}},
	{"without a block", func(_, block string, _ int64) error { return os.Remove(block) }},
	{"truncated and without an index", func(stream, block string, size int64) error {
		if err := os.RemoveAll(filepath.Join(stream, "msgs", "index.db")); err != nil {
			return err
		}
		return os.Truncate(block, rand.Int64N(size+1))
	}},
	{"overwritten", func(_, block string, size int64) error {
		f, err := os.OpenFile(block, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.WriteAt([]byte(strings.Repeat("x", 100)), rand.Int64N(size+1))
		return err
	}},
}

// damageView damages the stream of a hub's log in a folder of JetStream, by one of the damages or,
// if kind is negative, by any. It does nothing if the stream has no files.
func damageView(t *testing.T, store, hub string, kind int) {
	t.Helper()
	if kind < 0 {
		kind = rand.IntN(len(damages))
	}
	folders, err := filepath.Glob(
		filepath.Join(store, "*", "streams", streams.HubStream(domain.HubID(hub))),
	)
	harness.Must(t, err)
	for _, folder := range folders {
		blocks, err := filepath.Glob(filepath.Join(folder, "msgs", "*.blk"))
		if err != nil || len(blocks) == 0 {
			continue
		}
		block := blocks[rand.IntN(len(blocks))]
		info, err := os.Stat(block)
		if err == nil {
			err = damages[kind].damage(folder, block, info.Size())
		}
		harness.Must(t, err)
		t.Logf("view of %s: %s", hub, damages[kind].name)
	}
}

// checkJournal checks that the times of the records in the journal grow strictly, and that the
// sequences of each hub rise by one.
func checkJournal(t *testing.T, s *harness.Service) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	access, err := streams.ReadCredentials(filepath.Join(s.Dir, "nats-credentials.json"))
	harness.Must(t, err)
	conns, err := streams.Connect(ctx, access)
	harness.Must(t, err)
	defer conns.Close()
	api := jsapi.New(conns.Cloud)
	info, err := api.Info(ctx, streams.JournalStream(0))
	harness.Must(t, err)
	last := map[domain.HubID]uint64{}
	var at time.Time
	jumps := 0
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := api.Get(ctx, streams.JournalStream(0), seq)
		harness.Must(t, err)
		c, err := journal.Unmarshal(msg.Data)
		if err != nil {
			t.Fatalf("commit %d: %v", seq, err)
		}
		for i := range c.Records {
			r := &c.Records[i]
			if !r.Time.After(at) || r.Seq != last[r.Hub]+1 {
				t.Fatalf("commit %d: %s: got sequence %d at %v, after %d and %v", seq, r.Hub, r.Seq,
					r.Time, last[r.Hub], at)
			}
			if r.Time.Sub(at) == 1 {
				jumps++
			}
			at, last[r.Hub] = r.Time, r.Seq
		}
	}
	t.Logf("%d commits, %d records a nanosecond after the one before", info.State.LastSeq, jumps)
}
