package ingest_test

import (
	"testing"
	"time"

	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/streamstest"
)

// TestConnectionStats holds that the metrics and the log line at the end of a connection count the
// messages of the hub.
func TestConnectionStats(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	log := &streamstest.LogLines{}
	s := r.shard(
		h.id, func(c *ingest.Config) { c.Logger = log.Logger() },
	)
	s.Observe(h.id, began(1))
	h.wantOnline(true)
	h.helloAcked("a", 1, 3, 0)
	h.eventsAcked("a", 1, 3)
	h.events("a", 2, 4) // two of them again
	h.wantAck("a", 4)
	h.hello("a", 7, 8) // 5 and 6 are lost
	h.wantAck("a", 6)
	h.sendEvents("a", event(7), `{"seq":8,"type":""}`)
	h.wantAck("a", 8)
	h.sendEvents("a", "no event")
	h.wantAck("a", 8)
	h.events("a", 20, 20)
	h.wantAck("a", 8)
	s.CountRequest(h.id)
	s.CountRequest(h.id)
	s.Observe(h.id, ended(1, "read error"))
	h.wantOnline(false)
	s.Observe(h.id, began(2))
	s.Observe(h.id, ended(2, "kicked"))
	streamstest.Eventually(
		t, "two connections are logged", func() bool { return len(log.Of(t, "hub session")) == 2 },
	)
	for name, want := range map[string]float64{
		"events_stored_total": 5, "events_repeated_total": 2, "events_lost_total": 2,
		"messages_beyond_total": 1, "messages_unreadable_total": 1,
		"acks_total": 7, "acks_withheld_total": 0, "sessions": 1, "inbox_bytes": 0,
	} {
		if got := r.count(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for series, want := range map[[3]string]float64{
		{"gaps_total", "cause", "lost"}:                     1,
		{"gaps_total", "cause", "malformed"}:                1,
		{"events_malformed_total", "flaw", "type"}:          1,
		{"hellos_total", "outcome", "ok"}:                   2,
		{"presence_transitions_total", "status", "online"}:  2,
		{"presence_transitions_total", "status", "offline"}: 2,
	} {
		if got := r.count(series[0], series[1], series[2]); got != want {
			t.Errorf("%v: got %v, want %v", series, got, want)
		}
	}
	both := log.Of(t, "hub session")
	for field, want := range map[string]any{
		"level": "INFO", "hub_id": string(h.id), "reason": "read error", "remote": "10.0.0.7",
		"events_stored": 5.0, "events_repeated": 2.0,
		"events_lost": 2.0, "events_malformed": 1.0, "events_unowned": 0.0, "requests": 2.0,
	} {
		if both[0][field] != want {
			t.Errorf("%s: got %v, want %v", field, both[0][field], want)
		}
	}
	if took, _ := both[0]["duration_ms"].(float64); took <= 0 || took > 60_000 {
		t.Errorf("duration_ms: got %v, want more than 0", both[0]["duration_ms"])
	}
	if both[1]["events_stored"] != 0.0 || both[1]["requests"] != 0.0 || both[1]["reason"] != "kicked" {
		t.Errorf("second line: got %v, want the counts of the second connection", both[1])
	}
}
