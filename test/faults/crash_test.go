package faults

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/test/harness"
)

// kills is how often a test kills the service.
var kills = flag.Int("kills", 3, "how often a test kills the service")

// retryPause is the pause between two requests of clients that write, or while the service is down.
const retryPause = 50 * time.Millisecond

// sender is a hub that sends numbered events through every crash. It resends unacknowledged events,
// as the protocol requires.
type sender struct {
	hub *harness.RawHub
	// log is the hub's name for its log. Defaults to log-1.
	log string
	// pace is the time between two messages.
	pace time.Duration
	// limit is the total number of events. 0 means no limit.
	limit uint64
	acked uint64
	next  uint64
	// forgets makes the hub delete what was acknowledged, as hubs do. Otherwise it holds
	// everything.
	forgets bool
	// progress is a copy of acked for other goroutines. backwards has the acks that were lower than
	// an earlier one on the same connection.
	progress  atomic.Uint64
	backwards []backwards
	// through has broker addresses to use in turn. Empty means the address from enrolment.
	through []string
	// readers follow the hub from its first event. The sender waits for those that are far behind.
	readers []*follower
}

// maxLead is how many events a sender sends before its readers have them.
const maxLead = 5000

// outruns reports whether a reader of the hub is too far behind for more events.
func (h *sender) outruns(sent uint64) bool {
	return slices.ContainsFunc(h.readers, func(f *follower) bool {
		return sent > f.observed.Load()+maxLead
	})
}

// backwards is an ack that is lower than an earlier one on the same connection.
type backwards struct {
	at             time.Time
	through, after uint64
}

func (b backwards) String() string {
	return fmt.Sprintf("%d after %d at %s", b.through, b.after, b.at.Format("15:04:05.000"))
}

// run sends until stop is closed or all events are acknowledged. It counts acknowledged events in
// acked.
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

// hello sends a hello with the events that the hub holds.
func (h *sender) hello() {
	oldest := uint64(1)
	if h.forgets {
		oldest = h.acked + 1
	}
	h.hub.Hello(cmp.Or(h.log, "log-1"), oldest, h.next)
}

// session sends over one connection, until the connection or the sender ends.
func (h *sender) session(stop <-chan struct{}) {
	h.hello()
	sent := h.acked
	resend := time.NewTimer(5 * time.Second)
	helloAcked, highest := false, uint64(0)
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
			case helloAcked:
				// The ack is repeated because later events left a gap: send again from there.
				sent = h.acked
			}
			if !helloAcked {
				helloAcked, sent = true, h.acked
			}
			sent = max(sent, h.acked)
		case <-resend.C:
			sent = h.acked
			h.hello()
			resend.Reset(5 * time.Second)
		case <-tick.C:
			if !helloAcked || sent-h.acked > 1500 || h.outruns(sent) {
				continue
			}
			count := uint64(1 + rand.IntN(20))
			if h.limit > 0 {
				if count = min(count, h.limit-sent); count == 0 {
					continue
				}
			}
			h.hub.EventsFrom(cmp.Or(h.log, "log-1"), sent+1, sent+count)
			sent += count
			h.next = max(h.next, sent)
		}
	}
}

// follower reads a hub's events by cursor through every crash and keeps them.
type follower struct {
	client *harness.Client
	hub    string
	cursor string
	got    []harness.Event
	// observed is the number of reports among got.
	observed atomic.Uint64
	// unavailable is set where a page may be answered with 503 while the broker is down.
	unavailable bool
	// feed makes it follow the organization's feed, filtered by the hub.
	feed bool
}

// path returns the path of the follower's pages or streams, with the query given.
func (f *follower) path(what, query string) string {
	if f.feed {
		return "/events" + what + "?hub_id=" + f.hub + query
	}
	return "/hubs/" + f.hub + "/events" + what + "?" + strings.TrimPrefix(query, "&")
}

// run reads pages. It returns once stop is closed and it has read everything.
func (f *follower) run(stop <-chan struct{}) {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	for {
		path := f.path("", "&limit=500&wait=1")
		if f.cursor != "" {
			path += "&after=" + f.cursor
		}
		answer, err := f.client.Do("GET", path, nil)
		if err != nil || answer.Status == 429 || f.unavailable && answer.Status == 503 {
			<-retry.C
			continue
		}
		if answer.Status != 200 {
			f.client.T.Errorf(
				"hub %s: page: got %d %s, want 200", f.hub, answer.Status, answer.Body,
			)
			return
		}
		var page harness.Page
		if err := json.Unmarshal(answer.Body, &page); err != nil {
			f.client.T.Errorf("page: %v", err)
			return
		}
		f.add(page.Data...)
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

// add adds events that were read.
func (f *follower) add(events ...harness.Event) {
	f.got = append(f.got, events...)
	for _, e := range events {
		if e.Type == "channel.observed" {
			f.observed.Add(1)
		}
	}
}

// runStream reads event streams, each from the last id of the one before. It returns once stop is
// closed and it has read everything.
func (f *follower) runStream(stop <-chan struct{}) {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	path := f.path("/stream", "")
	for {
		stream, answer, err := f.client.TryStream(path, f.cursor)
		if stream == nil {
			if err == nil && answer.Status != 429 && answer.Status < 500 {
				f.client.T.Errorf(
					"hub %s: stream: got %d %s, want 200", f.hub, answer.Status, answer.Body,
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

// readStream reads a stream to its end and reports whether the follower is done.
func (f *follower) readStream(stream *harness.Stream, stop <-chan struct{}) bool {
	for {
		select {
		case m := <-stream.Messages:
			f.handle(m)
		case <-stream.Ended:
			for len(stream.Messages) > 0 {
				f.handle(<-stream.Messages)
			}
			return false
		case <-time.After(time.Second):
			select {
			case <-stop:
				if f.atEnd() {
					return true
				}
			default:
			}
		}
	}
}

// atEnd reports whether no event follows the last one that was read, as a page says. A cursor that
// is rejected is an error of the test, and the end.
func (f *follower) atEnd() bool {
	if f.cursor == "" {
		return true
	}
	answer, err := f.client.Do("GET", f.path("", "&limit=1&after="+f.cursor), nil)
	if err != nil || answer.Status == 429 || answer.Status >= 500 {
		return false
	}
	var page harness.Page
	if answer.Status != 200 || json.Unmarshal(answer.Body, &page) != nil {
		f.client.T.Errorf("hub %s: page: got %d %s, want 200", f.hub, answer.Status, answer.Body)
		return true
	}
	return len(page.Data) == 0
}

// handle records the event of a message.
func (f *follower) handle(m harness.Message) {
	var events []harness.Event
	f.cursor, events = take(f.client.T, m, f.cursor, nil)
	f.add(events...)
}

// take returns a reader's cursor and events after a message of its stream.
func take(
	t testing.TB, m harness.Message, cursor string, got []harness.Event,
) (string, []harness.Event) {
	if m.ID != "" {
		cursor = m.ID
	}
	if m.Data == "" {
		return cursor, got
	}
	var event harness.Event
	if err := json.Unmarshal([]byte(m.Data), &event); err != nil {
		t.Errorf("message %s: %q: %v", m.ID, m.Data, err)
	}
	return cursor, append(got, event)
}

// numbersOf checks that the observed values of a log rise by one from 1, and returns the last.
func numbersOf(t *testing.T, who string, events []harness.Event) uint64 {
	t.Helper()
	var last uint64
	for _, e := range events {
		if e.Type == "hub.events_skipped" {
			t.Errorf("%s: got hub.events_skipped %s, want none", who, e.Data)
		}
		if e.Type != "channel.observed" {
			continue
		}
		var data struct{ Value uint64 }
		harness.Must(t, json.Unmarshal(e.Data, &data))
		if data.Value != last+1 {
			t.Fatalf("%s: after event %d got %d, want the next number", who, last, data.Value)
		}
		last = data.Value
	}
	return last
}

// same checks that a reader received every stored event once, in order and under its cursor.
func same(t *testing.T, who string, got, stored []harness.Event) {
	t.Helper()
	if len(got) != len(stored) {
		t.Errorf("hub %s: reader got %d events, want %d", who, len(got), len(stored))
	}
	for n := range min(len(got), len(stored)) {
		if got[n].Cursor != stored[n].Cursor || string(got[n].Data) != string(stored[n].Data) {
			t.Fatalf("hub %s: event %d: got %+v, want %+v", who, n, got[n], stored[n])
		}
	}
}
