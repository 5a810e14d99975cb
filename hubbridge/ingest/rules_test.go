package ingest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/protocol"
)

// adopted returns a new hub of the organization.
func adopted(r *testIngest) *hub {
	r.t.Helper()
	h := r.hub()
	h.adopt()
	return h
}

// started returns a hub of the organization whose shard runs and whose log is "a", empty.
func started(t *testing.T) (*hub, *running) {
	t.Helper()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.helloAcked("a", 1, 0, 0)
	return h, s
}

func TestLostEventsAreRecordedOnce(t *testing.T) {
	t.Parallel()
	h, _ := started(t)
	h.eventsAcked("a", 1, 2)
	for range 2 {
		h.helloAcked("a", 10, 12, 9)
	}
	h.eventsAcked("a", 10, 12)
	h.helloAcked("a", 13, 12, 12)
	h.hello("a", 5, 8) // its newest is below the stored numbers
	h.wantAck("a", 12)
	h.wantEventLog("1 2 skip:3-9 10 11 12")
}

func TestReset(t *testing.T) {
	t.Parallel()
	h, s := started(t)
	h.eventsAcked("a", 1, 2)
	h.helloAcked("b", 5, 6, 4)
	h.eventsAcked("b", 5, 6)
	h.wantEventLog("log_reset:factory_reset 5 6")
	// The former log does not count after a restart either.
	s.stop()
	h.r.shard(h.id)
	h.helloAcked("b", 5, 6, 6)
	h.eventsAcked("b", 7, 7)
	h.wantEventLog("log_reset:factory_reset 5 6 7")
	// The return to a former log is a reset like any other.
	h.helloAcked("a", 1, 3, 0)
	h.wantEventLog("log_reset:factory_reset")
	if got := h.r.count("resets_total"); got != 2 {
		t.Errorf("resets counted: got %v, want 2", got)
	}
}

// TestStraysOfAFormerLog holds that events of a former log, which arrive over an old connection,
// are no reset.
func TestStraysOfAFormerLog(t *testing.T) {
	t.Parallel()
	h, s := started(t)
	h.eventsAcked("a", 1, 2)
	h.helloAcked("b", 1, 0, 0)
	for _, restart := range []bool{false, true} {
		if restart {
			s.kill()
			h.r.shard(h.id)
		}
		h.events("a", 3, 4)
		h.events("a", 1, 1)
		h.helloAcked("b", 1, 1, 0)
		h.wantEventLog("log_reset:factory_reset")
	}
	if got := h.r.count("messages_stray_total"); got != 4 {
		t.Errorf("strays counted: got %v, want 4", got)
	}
}

// TestResetWithoutHello tries a hub that was reset while connected and sends events of its new log
// without a hello.
func TestResetWithoutHello(t *testing.T) {
	t.Parallel()
	h, _ := started(t)
	h.eventsAcked("a", 1, 2)
	h.events("b", 7, 8)
	h.wantAck("b", 0)
	h.wantEventLog("1 2") // not reset yet
	h.eventsAcked("b", 1, 3)
	h.wantEventLog("log_reset:factory_reset 1 2 3")
	h.events("c", 9, 9)
	h.wantAck("c", 0)
	h.hello("c", 8, 9) // it no longer holds number 1
	h.wantAck("c", 7)
	h.eventsAcked("c", 8, 9)
	h.wantEventLog("log_reset:factory_reset 8 9")
}

func TestMalformedEventsBecomeGaps(t *testing.T) {
	t.Parallel()
	h, _ := started(t)
	without := func(seq uint64, what, instead string) string { return strings.Replace(event(seq), what, instead, 1) }
	h.sendEvents(
		"a", event(1), without(2, `"type":"channel.observed",`, ``),
		without(3, `2026-01-02T03:04:05Z`, `yesterday`), event(4), `9`,
		without(6, `channel.observed`, `weather.changed`),
	)
	h.wantAck("a", 6)
	h.wantEventLog("1 skip:2-2 skip:3-3 4 skip:5-5 weather.changed")
	if got := h.r.count("events_malformed_total", "flaw", "time"); got != 1 {
		t.Errorf("malformed times counted: got %v, want 1", got)
	}
}

func TestUnreadableMessagesAreDropped(t *testing.T) {
	t.Parallel()
	h, _ := started(t)
	h.eventsAcked("a", 1, 1)
	for _, payload := range []string{ // codec.TestUnreadable has more of them
		"", `{"log":"a","events":[` + event(2) + "," + event(4) + `]}`,
		`{"log":"a","events":[` + event(2) + `]}` + strings.Repeat(" ", protocol.MaxMessageBytes),
	} {
		h.send("events", payload)
		h.wantAck("a", 1)
	}
	h.send("hello", `{"protocol":2,"log":"a","oldest":1,"newest":1}`) // no ack
	h.eventsAcked("a", 2, 2)
	h.wantEventLog("1 2")
	if got := h.r.count("messages_unreadable_total"); got != 3 {
		t.Errorf("unreadable messages counted: got %v, want 3", got)
	}
	if got := h.r.count("hellos_total", "outcome", "protocol"); got != 1 {
		t.Errorf("hellos of another protocol counted: got %v, want 1", got)
	}
}

// TestAdoption holds that events of a hub without an organization are acknowledged and not stored,
// and that the hub, once added, continues after the last ack without a new hello.
func TestAdoption(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("restarts=%v", restarts), func(t *testing.T) {
			t.Parallel()
			r := newTestIngest(t, time.Hour)
			h := r.hub()
			s := r.shard(h.id)
			restart := func() {
				if restarts {
					s.kill()
					s = r.shard(h.id)
				}
			}
			h.helloAcked("a", 3, 8, 2)
			restart()
			h.eventsAcked("a", 3, 5)
			h.events("a", 8, 9) // no log, no gap
			h.wantAck("a", 9)
			h.sendEvents("a", "{}", event(11))
			h.wantAck("a", 9)
			restart()
			h.adopt()
			h.eventsAcked("a", 8, 12)
			restart()
			h.eventsAcked("a", 13, 13)
			h.wantEventLog("10 11 12 13")
			if h.presence().HubID != "" {
				t.Error("a hub whose connection was not reported has a presence record")
			}
		})
	}
}

func TestResetBeforeAdoption(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := r.hub()
	r.shard(h.id)
	h.events("a", 5, 6) // without a hello
	h.wantAck("a", 6)
	h.helloAcked("b", 3, 4, 2)
	h.adopt()
	h.events("a", 7, 7)
	h.eventsAcked("b", 3, 4)
	h.wantEventLog("3 4")
}

// TestAdoptionIsNeverMissed holds that the events of a hub that was just added are stored although
// the view of the directory is behind.
func TestAdoptionIsNeverMissed(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := r.hub()
	r.shard(h.id, func(cfg *ingest.Config) { cfg.Ownership = emptyView{} })
	h.helloAcked("a", 1, 1, 0)
	h.adopt()
	h.eventsAcked("a", 1, 1)
	h.wantEventLog("1")
}
