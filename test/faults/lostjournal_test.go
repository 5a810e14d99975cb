package faults

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hubcloud/test/harness"
)

// TestJournalLostItsEnd brings back an old copy of the journal, while the hub's own stream is new:
// a power cut leaves the same with --sync 2m. The writer of the journal and the ingest disagreed
// about the end of the log, so that the hub got no ack for up to a day, while the API called it
// online. The journal must decide, and begin a new epoch, since it gives sequences out again.
func TestJournalLostItsEnd(t *testing.T) {
	t.Parallel()
	s := harness.Start(t, "--rate", "100000", "--burst", "100000")
	tenant := harness.NewTenant(t, s, "Lost end")
	hub, idle := adopted(t, s, tenant), adopted(t, s, tenant)
	send := func(h *harness.RawHub, first, last uint64) {
		t.Helper()
		h.Connect()
		h.Hello("log-1", first, last)
		h.WaitAck("log-1", first-1)
		h.EventsFrom("log-1", first, last)
		h.WaitAck("log-1", last)
		h.Disconnect()
		tenant.Await(h.ID, "", "the hub is offline", func(e harness.Event) bool {
			return e.Type == "hub.disconnected"
		})
	}
	for _, h := range []*harness.RawHub{hub, idle} {
		h.Disconnect()
		send(h, 1, 20)
	}
	kept := tenant.Head(hub.ID)
	durable := filepath.Join(s.Dir, "nats", "durable")
	old := filepath.Join(t.TempDir(), "durable")
	s.Stop()
	harness.Must(t, os.CopyFS(old, os.DirFS(durable)))
	s.Begin()
	var lost []string
	for _, h := range []*harness.RawHub{hub, idle} {
		send(h, 21, 24)
		lost = append(lost, tenant.Head(h.ID))
	}
	s.Stop()
	harness.Must(t, os.RemoveAll(durable))
	harness.Must(t, os.CopyFS(durable, os.DirFS(old)))
	s.Begin()
	send(hub, 25, 40)
	var types []string
	for _, e := range tenant.AllEvents(hub.ID, kept) {
		types = append(types, e.Type)
	}
	for _, want := range []string{"hub.log_reset", "hub.events_skipped"} {
		if !slices.Contains(types, want) {
			t.Errorf("after the loss: got the events %s, want %s among them", types, want)
		}
	}
	gone := func(h *harness.RawHub, cursor string) {
		t.Helper()
		tenant.Must(http.MethodGet, "/hubs/"+h.ID+"/events?after="+cursor, nil, http.StatusGone)
	}
	gone(hub, lost[0])
	gone(idle, lost[1])
	send(idle, 25, 60) // the sequence of the lost event is given out again
	gone(idle, lost[1])
	if !strings.Contains(s.Log(), "the journal has lost the end of a hub log") {
		t.Error("the log does not tell of the loss")
	}
}
