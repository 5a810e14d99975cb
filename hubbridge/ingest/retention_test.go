package ingest_test

import (
	"testing"
	"time"

	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/streamstest"
)

// TestRetentionEmptiesTheLog holds that the identity and last number of a hub's log outlive its
// events: no restart causes a false gap, a false reset or a repeat.
func TestRetentionEmptiesTheLog(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*running){
		"none": func(*running) {}, "stop": (*running).stop, "kill": (*running).kill,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestIngest(t, 500*time.Millisecond)
			h := adopted(r)
			s := r.shard(h.id)
			h.helloAcked("a", 1, 5, 0)
			h.eventsAcked("a", 1, 5)
			h.emptied() // the checkpoint is written long before
			end(s)
			if name != "none" {
				r.shard(h.id)
			}
			h.helloAcked("a", 6, 5, 5)
			h.eventsAcked("a", 4, 7)
			h.wantJournal("1 2 3 4 5 6 7")
			h.emptied()
			h.helloAcked("a", 10, 10, 9)
			h.wantJournal("1 2 3 4 5 6 7 skip:8-9")
		})
	}
}

// TestDeadLongerThanRetention tries a process that was killed before it had written the checkpoint,
// and restarts after every event has expired. A gap within the unaccounted range is not recorded.
func TestDeadLongerThanRetention(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		oldest uint64
		want   string
	}{
		"everything was acknowledged": {7, "connected 7"},
		// 6 is stored again: its first record has expired
		"the last ack was lost":        {6, "connected 6 7"},
		"events were lost in addition": {9, "connected skip:3-8 9"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestIngest(t, 1500*time.Millisecond)
			h := adopted(r)
			// With a long retention the checkpoint is written late.
			s := r.shard(h.id, func(cfg *ingest.Config) { cfg.Retention = time.Hour })
			h.helloAcked("a", 1, 2, 0)
			h.eventsAcked("a", 1, 2)
			s.stop() // writes the checkpoint
			s = r.shard(h.id, func(cfg *ingest.Config) { cfg.Retention = time.Hour })
			h.eventsAcked("a", 3, 6)
			s.kill()
			h.emptied()
			// The bridge restarts twice, and observes the connection before the hub says hello.
			r.shard(h.id).kill()
			s = r.shard(h.id)
			s.Observe(h.id, began(1))
			streamstest.Eventually(
				t, "the hub is online", func() bool { return h.presence().Online },
			)
			s.kill()
			r.shard(h.id)
			h.helloAcked("a", tc.oldest, 8, tc.oldest-1)
			if tc.oldest < 9 {
				h.eventsAcked("a", tc.oldest, 7)
			} else {
				h.eventsAcked("a", 9, 9)
			}
			h.wantJournal("1 2 3 4 5 6 " + tc.want)
		})
	}
}
