package faults

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// feedTrial is an organization whose hubs send events, with the readers of its feed.
type feedTrial struct {
	t             *testing.T
	broker        *natscluster.Cluster
	first, second *harness.Service
	tenant        *harness.Tenant
	clients       []*harness.Client
	hubs          []*feedHub
	// spare are hubs that have connected and that no organization has.
	spare []*harness.RawHub
	// foreign is a hub of another organization.
	foreign *feedHub
	// readers are the sets of readers that together read the whole feed, by what they do.
	readers map[string][]*feedReader
	stop    chan struct{}
	reading sync.WaitGroup
	resets  int
}

// feedHub is a hub that sends.
type feedHub struct {
	*sender
	stop chan struct{}
	done chan struct{}
	// former are the events of the logs that resets have ended.
	former [][]harness.Event
}

func newFeedTrial(t *testing.T) *feedTrial {
	t.Helper()
	broker := natscluster.StartOnLoopback(t, "4")
	broker.Arguments = append(broker.Arguments, "--rate", "100000", "--burst", "100000")
	f := &feedTrial{
		t: t, broker: broker, first: broker.Join(), second: broker.Join(),
		readers: map[string][]*feedReader{}, stop: make(chan struct{}),
	}
	f.tenant = harness.NewTenant(t, f.first, "Feed")
	for _, replica := range []*harness.Service{f.first, f.second} {
		f.clients = append(f.clients, harness.NewClient(t, replica.Base(), f.tenant.Key))
	}
	for range *rounds {
		hub := harness.NewRawHub(t, f.first)
		hub.Enroll()
		hub.GoOnline()
		hub.Disconnect()
		f.spare = append(f.spare, hub)
	}
	for range 3 {
		f.hubs = append(f.hubs, f.newHub(f.tenant))
	}
	f.foreign = f.newHub(harness.NewTenant(t, f.first, "Another feed"))
	for what, parts := range map[string]int{"pages": 1, "long polls": 3, "streams": 16} {
		for part := range parts {
			f.read(what, fmt.Sprintf("part=%d/%d", part+1, parts), what == "streams")
		}
	}
	f.read(filteredReaders, "type=channel.*", true)
	f.read(restingReaders, "part=1/1", false)
	return f
}

// filteredReaders read the events of channels only.
const filteredReaders = "filtered streams"

// restingReaders read pages, and rest from before each reset until the hub has reported again.
const restingReaders = "resting pages"

// rest makes the resting readers rest until the caller calls resume. They have read events of every
// hub.
func (f *feedTrial) rest() (resume func()) {
	readers := f.readers[restingReaders]
	for _, r := range readers {
		r.turn.Lock()
	}
	return func() {
		for _, r := range readers {
			r.turn.Unlock()
		}
	}
}

// newHub adds a hub that sends to an organization.
func (f *feedTrial) newHub(tenant *harness.Tenant) *feedHub {
	f.t.Helper()
	hub := adopted(f.t, f.first, tenant)
	hub.Disconnect()
	return f.sending(hub)
}

// sending makes a hub send until the test ends.
func (f *feedTrial) sending(hub *harness.RawHub) *feedHub {
	h := &feedHub{sender: &sender{
		hub: hub, log: "log-1", pace: 100 * time.Millisecond, through: f.broker.MQTT,
	}}
	h.begin()
	f.t.Cleanup(h.end)
	return h
}

// add adds a spare hub to the organization, at a replica that answers.
func (f *feedTrial) add() {
	f.t.Helper()
	hub := f.spare[0]
	f.spare = f.spare[1:]
	body := map[string]string{"serial": hub.Serial, "site_id": f.tenant.Site}
	streamstest.Eventually(f.t, "a hub is added", func() bool {
		for _, client := range f.clients {
			answer, err := client.Try(http.MethodPost, "/hubs", body)
			if err == nil && answer.Status == http.StatusOK {
				return true
			}
		}
		return false
	})
	f.hubs = append(f.hubs, f.sending(hub))
}

func (h *feedHub) begin() {
	h.stop, h.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(h.done)
		h.run(h.stop)
	}()
}

// end stops the hub. Further calls do nothing.
func (h *feedHub) end() {
	select {
	case <-h.done:
	default:
		close(h.stop)
		<-h.done
	}
}

// reset resets a hub to factory state, once the events of its log are known.
func (f *feedTrial) reset(n int) {
	f.t.Helper()
	h := f.hubs[n]
	defer f.rest()()
	more := h.progress.Load() + 5
	streamstest.Eventually(f.t, h.hub.ID+" sends what the resting readers lack", func() bool {
		return h.progress.Load() >= more
	})
	h.end()
	h.former = append(h.former, f.eventsOf(h))
	f.resets++
	h.log = fmt.Sprintf("log-%d", len(h.former)+1)
	h.acked, h.next = 0, 0
	h.progress.Store(0)
	h.begin()
	streamstest.Eventually(f.t, h.hub.ID+" reports after the reset", func() bool {
		return h.progress.Load() >= 5
	})
}

// eventsOf reads a hub's log at a replica that answers.
func (f *feedTrial) eventsOf(h *feedHub) (all []harness.Event) {
	f.t.Helper()
	for after := ""; ; {
		var page harness.Page
		streamstest.Eventually(f.t, h.hub.ID+" can be read", func() bool {
			for _, client := range f.clients {
				path := "/hubs/" + h.hub.ID + "/events?limit=500"
				if after != "" {
					path += "&after=" + url.QueryEscape(after)
				}
				answer, err := client.Try(http.MethodGet, path, nil)
				if err == nil && answer.Status == http.StatusOK {
					answer.JSON(f.t, &page)
					return true
				}
			}
			return false
		})
		all = append(all, page.Data...)
		if after = page.NextCursor; !page.HasMore {
			return all
		}
	}
}

// awaitProgress waits until further events of every hub are acknowledged.
func (f *feedTrial) awaitProgress(when string) {
	f.t.Helper()
	began := time.Now()
	for _, h := range f.hubs {
		more := h.progress.Load() + 20
		streamstest.Eventually(f.t, h.hub.ID+" goes on "+when, func() bool {
			return h.progress.Load() >= more
		})
	}
	f.t.Logf("%s: every hub has gone on after %s", when, time.Since(began))
}

// check ends the traffic, waits until all readers have its last events, and compares what they got.
func (f *feedTrial) check() {
	f.t.Helper()
	logs := map[string][][]harness.Event{}
	for _, h := range f.hubs {
		h.end()
		logs[h.hub.ID] = append(slices.Clone(h.former), f.eventsOf(h))
		for _, log := range logs[h.hub.ID][1:] {
			if log[0].Type != "hub.log_reset" || string(log[0].Data) != `{"reason":"factory_reset"}` {
				f.t.Errorf("log of %s after a reset: begins with %+v, want hub.log_reset", h.hub.ID, log[0])
			}
		}
	}
	f.foreign.end()
	for set := range f.readers {
		for _, h := range f.hubs {
			all := logs[h.hub.ID]
			last := slices.DeleteFunc(slices.Clone(all[len(all)-1]), isOfCloud)
			streamstest.Eventually(f.t, set+" have the last event of "+h.hub.ID, func() bool {
				return slices.ContainsFunc(f.gotBy(set, h.hub.ID), func(e harness.Event) bool {
					return e.Cursor == last[len(last)-1].Cursor
				})
			})
		}
	}
	close(f.stop)
	f.reading.Wait()
	for set, readers := range f.readers {
		for _, r := range readers {
			if len(r.wrong) > 0 || r.expired > 0 {
				f.t.Errorf(
					"%s, %s: got %d answers 410 and these wrong ones: %q, want none", set, r.query,
					r.expired, r.wrong,
				)
			}
			for hub := range r.got {
				if logs[hub] == nil {
					f.t.Errorf("%s, %s: got events of %s, which is foreign", set, r.query, hub)
				}
			}
		}
		events, gaps := 0, 0
		for hub, all := range logs {
			got := f.gotBy(set, hub)
			events += len(got)
			for _, e := range got {
				if e.Type != "feed.gap" {
					continue
				}
				if gaps++; !strings.Contains(string(e.Data), `"reason":"log_reset"`) {
					f.t.Errorf("%s: hub %s: got feed.gap with %s, want log_reset", set, hub, e.Data)
				}
			}
			if err := isUnion(all, got, set == filteredReaders); err != nil {
				f.t.Errorf("%s: hub %s: %v", set, hub, err)
			}
		}
		f.t.Logf("%s: %d events of %d hubs, %d of them feed.gap", set, events, len(logs), gaps)
		if set == restingReaders && gaps < f.resets {
			f.t.Errorf("%s: got %d feed.gap after %d resets, want one of each", set, gaps, f.resets)
		}
	}
}

// gotBy returns the events of a hub that the only reader of a set got that has any.
func (f *feedTrial) gotBy(set, hub string) (got []harness.Event) {
	f.t.Helper()
	for _, r := range f.readers[set] {
		r.mu.Lock()
		events := slices.Clone(r.got[hub])
		r.mu.Unlock()
		if len(events) > 0 && len(got) > 0 {
			f.t.Fatalf("%s: two parts of the feed have events of %s", set, hub)
		}
		got = append(got, events...)
	}
	return got
}

// isOfCloud reports whether the cloud itself has recorded an event, which may be at any time.
func isOfCloud(e harness.Event) bool { return strings.HasPrefix(e.Type, "hub.") }

// isUnion returns an error unless a reader got the events of the successive logs of a hub once and
// in order. A feed.gap stands for the rest of a log that is not the last. After the end of each log
// the cloud may have recorded that the hub had disconnected. filtered leaves out the cloud's
// events.
func isUnion(logs [][]harness.Event, got []harness.Event, filtered bool) error {
	rest := slices.Clone(logs)
	if filtered {
		for i := range rest {
			rest[i] = slices.DeleteFunc(slices.Clone(rest[i]), isOfCloud)
		}
	}
	for n, e := range got {
		for len(rest) > 1 && len(rest[0]) == 0 && rest[1][0].Cursor == e.Cursor {
			rest = rest[1:]
		}
		switch {
		case len(rest[0]) > 0 && rest[0][0].Cursor == e.Cursor:
			rest[0] = rest[0][1:]
		case e.Type == "feed.gap" && len(rest) > 1:
			rest = rest[1:]
		case len(rest[0]) == 0 && isOfCloud(e):
		case len(rest[0]) == 0:
			return fmt.Errorf("event %d is %s %s, which no log has", n, e.Type, e.Cursor)
		default:
			return fmt.Errorf(
				"event %d is %s %s, want %s %s", n, e.Type, e.Cursor, rest[0][0].Type,
				rest[0][0].Cursor,
			)
		}
	}
	for _, log := range rest {
		if left := slices.DeleteFunc(slices.Clone(log), isOfCloud); len(left) > 0 {
			return fmt.Errorf("%d events are missing, from %s on", len(left), left[0].Cursor)
		}
	}
	return nil
}
