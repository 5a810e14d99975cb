package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// kills is how often a test kills the service; more find more.
var kills = flag.Int("kills", 6, "how often a test kills the service")

// retryPause is the time between two tries of a load while the service is away.
const retryPause = 50 * time.Millisecond

// sender is a hub that keeps sending numbered events, through every crash: it resends what was not
// acknowledged, as the link says.
type sender struct {
	hub *harness.RawHub
	// pace is the time between two of its messages.
	pace time.Duration
	// limit is how many events it has at all; 0 is no limit.
	limit uint64
	acked uint64
	next  uint64
	// progress is acked, for others to look at; backwards are acks that said less than another
	// before them on their connection.
	progress  atomic.Uint64
	backwards []backwards
	// through are addresses of the broker that it tries in turn; none for the one that it was told.
	through []string
}

// backwards is an ack that said less than another before it on its connection.
type backwards struct {
	at             time.Time
	through, after uint64
}

func (b backwards) String() string {
	return fmt.Sprintf("%d after %d at %s", b.through, b.after, b.at.Format("15:04:05.000"))
}

// run sends until stop is closed or everything is acknowledged; whatever was acknowledged is
// counted in acked.
func (h *sender) run(stop <-chan struct{}) {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	for try := 0; h.limit == 0 || h.acked < h.limit; try++ {
		select {
		case <-stop:
			return
		default:
		}
		if len(h.through) > 0 {
			h.hub.Through(h.through[try%len(h.through)])
		}
		if err := h.hub.TryConnect(h.hub.ID); err != nil {
			<-retry.C
			continue
		}
		h.session(stop)
	}
}

func (h *sender) session(stop <-chan struct{}) {
	h.hub.Hello("log-1", 1, h.next)
	sent := h.acked
	resend := time.NewTimer(5 * time.Second)
	greeted, highest := false, uint64(0)
	tick := time.NewTicker(h.pace)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			h.hub.Disconnect()
			return
		case <-h.hub.Lost:
			return
		case ack := <-h.hub.Acks:
			if ack.Through < highest {
				h.backwards = append(h.backwards, backwards{time.Now(), ack.Through, highest})
			}
			highest = max(highest, ack.Through)
			h.progress.Store(max(highest, h.acked))
			switch {
			case ack.Through > h.acked:
				h.acked = ack.Through
				if h.acked == h.limit {
					h.hub.Disconnect()
					return
				}
				resend.Reset(5 * time.Second)
			case greeted:
				// The ack repeats what is stored: what was sent since did not connect to it, so the
				// hub sends again from there.
				sent = h.acked
			}
			if !greeted {
				greeted, sent = true, h.acked
			}
			sent = max(sent, h.acked)
		case <-resend.C:
			sent = h.acked
			h.hub.Hello("log-1", 1, h.next)
			resend.Reset(5 * time.Second)
		case <-tick.C:
			if !greeted || sent-h.acked > 1500 {
				continue
			}
			count := uint64(1 + rand.IntN(20))
			if h.limit > 0 {
				if count = min(count, h.limit-sent); count == 0 {
					continue
				}
			}
			h.hub.EventsFrom("log-1", sent+1, sent+count)
			sent += count
			h.next = max(h.next, sent)
		}
	}
}

// follower reads a hub's events by cursor through every crash, and keeps what it got.
type follower struct {
	client *harness.Client
	hub    string
	cursor string
	got    []harness.Event
	// patient is set where a page may be answered 503 while the broker is away.
	patient bool
}

// It ends once stop is closed and it has caught up.
func (f *follower) run(stop <-chan struct{}) {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	for {
		path := "/hubs/" + f.hub + "/events?limit=500&wait=1"
		if f.cursor != "" {
			path += "&after=" + f.cursor
		}
		answer, err := f.client.Do("GET", path, nil)
		if err != nil || answer.Status == 429 || f.patient && answer.Status == 503 {
			<-retry.C
			continue
		}
		if answer.Status != 200 {
			f.client.T.Errorf(
				"hub %s: a follower was answered %d %s", f.hub, answer.Status, answer.Body,
			)
			return
		}
		var page harness.Page
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			f.client.T.Errorf("page: %v", err)
			return
		}
		f.got = append(f.got, page.Data...)
		f.cursor = page.NextCursor
		select {
		case <-stop:
			if len(page.Data) == 0 {
				return
			}
		default:
		}
	}
}

// runStream reads the same from event streams, each from the last id of the one before. It ends
// once stop is closed and nothing has come for a second.
func (f *follower) runStream(stop <-chan struct{}) {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	path := "/hubs/" + f.hub + "/events/stream"
	for {
		stream, answer, err := f.client.TryStream(path, f.cursor)
		if stream == nil {
			if err == nil && answer.Status != 429 && answer.Status < 500 {
				f.client.T.Errorf(
					"hub %s: a stream was answered %d %s", f.hub, answer.Status, answer.Body,
				)
				return
			}
			<-retry.C
			continue
		}
		over := f.readStream(stream, stop)
		stream.Close()
		if over {
			return
		}
	}
}

// readStream reads a stream to its end and says whether nothing more is to be read at all.
func (f *follower) readStream(stream *harness.Stream, stop <-chan struct{}) bool {
	for {
		select {
		case m := <-stream.Messages:
			f.take(m)
		case <-stream.Ended:
			for len(stream.Messages) > 0 {
				f.take(<-stream.Messages)
			}
			return false
		case <-time.After(time.Second):
			select {
			case <-stop:
				return true
			default:
			}
		}
	}
}

// take keeps what a block of a stream says.
func (f *follower) take(m harness.Message) {
	if m.ID != "" {
		f.cursor = m.ID
	}
	if m.Data == "" {
		return
	}
	var event harness.Event
	if err := json.Unmarshal([]byte(m.Data), &event); err != nil {
		f.client.T.Errorf("hub %s: %q: %v", f.hub, m.Data, err)
	}
	f.got = append(f.got, event)
}

// numbersOf checks that the observed values of a log rise by one from 1, and gives the last.
func numbersOf(t *testing.T, who string, events []harness.Event) uint64 {
	t.Helper()
	var last uint64
	for _, e := range events {
		if e.Type == "hub.events_skipped" {
			t.Errorf("%s: skipped %s", who, e.Data)
		}
		if e.Type != "channel.observed" {
			continue
		}
		var data struct{ Value uint64 }
		if err := json.Unmarshal(e.Data, &data); err != nil {
			t.Fatal(err)
		}
		if data.Value != last+1 {
			t.Fatalf("%s: after %d comes %d", who, last, data.Value)
		}
		last = data.Value
	}
	return last
}

// TestKill kills the service in the midst of traffic, again and again: what was acknowledged to a
// hub is there once, in order, under the same cursor, and a consumer that goes on with its last
// cursor misses and repeats nothing.
func TestKill(t *testing.T) {
	t.Parallel()
	const hubs = 8
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	tenant := harness.NewTenant(t, s, "Kill")
	senders, followers, streamers := make([]*sender, hubs), make([]*follower, hubs), make([]*follower, hubs)
	starts := make([]string, hubs)
	for i := range hubs {
		hub := adopted(t, s, tenant)
		hub.Disconnect()
		senders[i] = &sender{hub: hub, pace: 25 * time.Millisecond}
		followers[i] = &follower{client: tenant.Client, hub: hub.ID}
		starts[i] = tenant.Head(hub.ID)
		streamers[i] = &follower{client: tenant.Client, hub: hub.ID, cursor: starts[i]}
	}
	stopSending, stopReading := make(chan struct{}), make(chan struct{})
	var sending, reading sync.WaitGroup
	for i := range hubs {
		sending.Go(func() { senders[i].run(stopSending) })
		reading.Go(func() { followers[i].run(stopReading) })
		reading.Go(func() { streamers[i].runStream(stopReading) })
	}
	for range *kills {
		harness.AnyMoment(500*time.Millisecond, 2*time.Second)
		s.Kill()
		s.Begin()
	}
	all := func(status string) func() bool {
		return func() bool {
			for _, h := range senders {
				var got struct{ Connection struct{ Status string } }
				tenant.Must(http.MethodGet, "/hubs/"+h.hub.ID, nil, http.StatusOK).JSON(t, &got)
				if got.Connection.Status != status {
					return false
				}
			}
			return true
		}
	}
	streamstest.Eventually(t, "every hub is connected again", all("online"))
	close(stopSending)
	sending.Wait()
	// its last event is stored
	streamstest.Eventually(t, "every hub is gone", all("offline"))

	for _, h := range senders {
		stored := tenant.AllEvents(h.hub.ID, "")
		last := numbersOf(t, h.hub.ID+" stored", stored)
		if last < h.acked {
			t.Errorf("hub %s: acknowledged through %d, stored through %d", h.hub.ID, h.acked, last)
		}
		if h.acked == 0 {
			t.Errorf("hub %s: nothing was acknowledged", h.hub.ID)
		}
	}
	close(stopReading)
	reading.Wait()
	for i, h := range senders {
		same(t, h.hub.ID+", by page", followers[i].got, tenant.AllEvents(h.hub.ID, ""))
		same(t, h.hub.ID+", by stream", streamers[i].got, tenant.AllEvents(h.hub.ID, starts[i]))
	}
}

// same holds that a reader has got what is stored: every event, once, in order, under its cursor.
func same(t *testing.T, who string, got, stored []harness.Event) {
	t.Helper()
	if len(got) != len(stored) {
		t.Errorf("hub %s: %d events stored, its reader got %d", who, len(stored), len(got))
	}
	for n := range min(len(got), len(stored)) {
		if got[n].Cursor != stored[n].Cursor || string(got[n].Data) != string(stored[n].Data) {
			t.Fatalf("hub %s: event %d was read as %+v, and is %+v", who, n, got[n], stored[n])
		}
	}
}
