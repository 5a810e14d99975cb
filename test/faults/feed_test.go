package faults

import (
	"slices"
	"sync"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// feedTrial is an organization whose hubs send events, with the readers of its feed.
type feedTrial struct {
	t      *testing.T
	tenant *harness.Tenant
	hubs   []*feedHub
	// readers are the sets of readers that together read the whole feed, by what they do.
	readers map[string][]*feedReader
	stop    chan struct{}
	reading sync.WaitGroup
}

// feedHub is a hub that sends.
type feedHub struct {
	*sender
	stop chan struct{}
	done chan struct{}
}

// newFeedTrial creates an organization with three hubs, which do not send yet.
func newFeedTrial(t *testing.T, s *harness.Service, pace time.Duration) *feedTrial {
	t.Helper()
	f := &feedTrial{
		t: t, tenant: harness.NewTenant(t, s, "Feed"), readers: map[string][]*feedReader{},
		stop: make(chan struct{}),
	}
	for range 3 {
		hub := adopted(t, s, f.tenant)
		hub.Disconnect()
		f.hubs = append(f.hubs, &feedHub{sender: &sender{hub: hub, pace: pace, forgets: true}})
	}
	return f
}

// restingReaders read pages, and rest when told to.
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

// send makes the hubs send, until the test ends.
func (f *feedTrial) send() {
	for _, h := range f.hubs {
		h.stop, h.done = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(h.done)
			h.run(h.stop)
		}()
		f.t.Cleanup(h.end)
	}
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
