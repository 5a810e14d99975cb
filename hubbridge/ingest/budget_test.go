package ingest_test

import (
	"testing"
	"time"

	"hubcloud/hubbridge/ingest"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/shares"
	"hubcloud/streams/streamstest"
)

// One hub with legal events filled the disk of all organizations within hours, and a restart of the
// service forgot what it had stored. Now its events get no ack beyond its budget, which is
// measured, and the hub goes on where it was once there is room.
func TestBudgetOfAHub(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	begun, log, active := time.Now(), &streamstest.LogLines{}, new(shares.Registry)
	now := &clock{now: begun}
	h := adopted(r)
	start := func() (*ingest.Budget, *running) {
		budget := ingest.NewBudget(ingest.BudgetConfig{
			Conns: r.Conns, Ownership: r, HubBytes: 50_000, Shares: active, Now: now.Now,
		})
		streamstest.Must(t, budget.Measure(t.Context()))
		return budget, r.shard(h.id, func(cfg *ingest.Config) {
			cfg.Budget, cfg.Now, cfg.Logger = budget, now.Now, log.Logger()
		})
	}
	_, shard := start()
	h.helloAcked("a", 1, 0, 0)
	const size = 20 // events of a message; each takes some 1,000 bytes
	stored := uint64(0)
	fill := func() (filled uint64) {
		for limited := len(log.Of(t, "hub limited")); ; filled += size {
			h.events("a", stored+1, stored+size)
			streamstest.Eventually(t, "an ack, or the limit", func() bool {
				return len(h.acks) > 0 || len(log.Of(t, "hub limited")) > limited
			})
			if len(h.acks) == 0 {
				return filled
			}
			stored += size
			h.wantAck("a", stored)
			if stored > 50_000/300 {
				t.Fatalf("%d events are stored within a budget of 50,000 bytes", stored)
			}
		}
	}
	first := fill()
	shed := r.count("messages_shed_total")
	h.events("a", stored+1, stored+size)
	streamstest.Eventually(t, "the hub is not listened to", func() bool {
		return r.count("messages_shed_total") > shed
	})
	shard.stop()
	stream := jsapi.New(r.Conns.Shard(h.id))
	streamstest.Eventually(t, "the hub's log has what was stored", func() bool {
		info, err := stream.Info(t.Context(), streams.HubStream(h.id))
		return err == nil && info.State.LastSeq >= stored
	})
	budget, _ := start()
	if again := fill(); first == 0 || 2*again > first {
		t.Errorf("%d events are stored, and %d more after a restart, want few more", first, again)
	}
	err := stream.Delete(t.Context(), streams.HubStream(h.id))
	if err == nil {
		err = budget.Measure(t.Context())
	}
	streamstest.Must(t, err)
	now.advance(time.Minute)
	h.eventsAcked("a", stored+1, stored+size)
	if !active.OthersActive("", begun) {
		t.Error("an organization whose hub has events is not active")
	}
}

// The broken messages of one hub took the CPU of others' events. Now a bounded number is looked at.
func TestMessagesOfAHubAreBounded(t *testing.T) {
	t.Parallel()
	now := &clock{now: time.Now()}
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	r.shard(h.id, func(cfg *ingest.Config) {
		cfg.Budget = ingest.NewBudget(ingest.BudgetConfig{Now: now.Now})
	})
	const sent = 12_000
	for range sent {
		h.send("events", "broken")
	}
	streamstest.Eventually(t, "messages beyond the bound are dropped", func() bool {
		// Some of them by the client of the broker, if this machine is busy.
		return r.count("messages_shed_total")+r.count("messages_dropped_total") >= sent-5000
	})
	if n := r.count("messages_unreadable_total"); n > 5000 {
		t.Errorf("got %v messages looked at, want at most 5000", n)
	}
}
