package ingest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

func (h *hub) wantOnline(online bool) (p domain.Presence) {
	h.r.t.Helper()
	streamstest.Eventually(h.r.t, fmt.Sprintf("online is %v", online), func() bool {
		p = h.presence()
		return p.Online == online && p.HubID == h.id
	})
	return p
}

func TestTransitionsAreTold(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	s.Observe(h.id, began(1))
	p := h.wantOnline(true)
	if p.PublicIP != "10.0.0.7" || p.Reason != nil || p.Connection.CID != 1 ||
		time.Since(p.Since) > time.Minute {
		t.Errorf("presence %+v", p)
	}
	h.hello("a", 1, 1)
	h.wantAck("a", 0)
	s.Observe(h.id, ended(1, "client closed"))
	p = h.wantOnline(false)
	if p.PublicIP != "10.0.0.7" || p.Reason == nil || *p.Reason != "client closed" ||
		string(p.Firmware) != `{"version":"1.0"}` {
		t.Errorf("presence %+v", p)
	}
	s.Observe(h.id, began(2))
	s.Observe(h.id, ended(2, ""))
	s.Observe(h.id, began(3))
	h.events("a", 1, 1)
	h.wantAck("a", 1)
	h.wantEventLog("connected disconnected:client_closed connected disconnected:null connected 1")
	if got := r.count("presence_transitions_total", "status", "online"); got != 3 {
		t.Errorf("transitions counted: %v", got)
	}
}

func TestTakeoverIsOneBatch(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	s.Observe(h.id, began(1))
	s.Observe(h.id, began(2))
	streamstest.Eventually(t, "a comparison is asked for", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.checks) == 1 && r.checks[0] == h.id
	})
	h.wantEventLog("connected")
	s.Observe(h.id, ended(1, "duplicate client id"))
	streamstest.Eventually(
		t, "the takeover", func() bool { return h.presence().Connection.CID == 2 },
	)
	h.wantEventLog("connected disconnected:duplicate_client_id connected")
}

// TestToldOnceOverACrash: a process was killed when the log had a transition and the bucket had
// not.
func TestToldOnceOverACrash(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	s.Observe(h.id, began(1))
	online := h.wantOnline(true)
	s.Observe(h.id, ended(1, "read error"))
	offline := h.wantOnline(false)
	s.Observe(h.id, began(2))
	h.wantOnline(true)
	s.kill()
	for _, bucketHas := range []domain.Presence{online, offline} {
		raw, err := json.Marshal(bucketHas)
		if err != nil {
			t.Fatal(err)
		}
		buckets, err := streams.OpenBuckets(t.Context(), r.Conns, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := buckets.Presence.Put(t.Context(), string(h.id), raw); err != nil {
			t.Fatal(err)
		}
		s = r.shard(h.id)
		// The broker's list says it again, and what ended long ago is said to end.
		s.Observe(h.id, began(2))
		s.Observe(h.id, ended(1, ""))
		streamstest.Eventually(
			t, "the bucket is put right",
			func() bool { p := h.presence(); return p.Online && p.Connection.CID == 2 },
		)
		s.kill()
	}
	h.wantEventLog("connected disconnected:read_error connected")
}

// TestObservationsOutliveFailures: nobody repeats what the broker said, so it is kept until it can
// be stored.
func TestObservationsOutliveFailures(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	s := r.shard(h.id, withLogs(logs))
	logs.set(func() error { return errors.New("the disk is full") }, nil)
	s.Observe(h.id, began(1))
	s.Observe(h.id, ended(1, "kicked"))
	s.Observe(h.id, began(2))
	streamstest.Eventually(t, "it is tried", func() bool { return r.count("sessions") == 1 })
	logs.set(
		once(fmt.Errorf("no answer: %w", jsapi.ErrOutcomeUnknown)),
		once(fmt.Errorf("no answer: %w", jsapi.ErrOutcomeUnknown)),
	)
	streamstest.Eventually(
		t, "the last connection",
		func() bool { p := h.presence(); return p.Online && p.Connection.CID == 2 },
	)
	h.wantEventLog("connected disconnected:kicked connected")
}

// TestAddedWhileConnected: nothing connected when the hub was added, so nothing is told; what
// happens later is.
func TestAddedWhileConnected(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%v", restart), func(t *testing.T) {
			t.Parallel()
			r := newTestIngest(t, time.Hour)
			h := r.hub()
			s := r.shard(h.id)
			s.Observe(h.id, began(1))
			h.wantOnline(true)
			s.Observe(h.id, ended(1, "client closed"))
			h.wantOnline(false)
			s.Observe(h.id, began(2))
			h.wantOnline(true)
			h.hello("a", 1, 0)
			h.wantAck("a", 0)
			h.adopt()
			if restart {
				s.kill()
				s = r.shard(h.id)
				s.Observe(h.id, began(2))
			}
			h.events("a", 1, 1)
			h.wantAck("a", 1)
			s.Observe(h.id, ended(2, "client closed"))
			h.wantOnline(false)
			h.wantEventLog("1 disconnected:client_closed")
		})
	}
}

// TestHelloBeforeTheBroker: a hub was heard before the broker told of its connection. Who has an
// ack is online already: an organization that adds the hub as soon as it has one must not hear that
// it has never come online.
func TestHelloBeforeTheBroker(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.helloOnce("a", 1, 0)
	streamstest.Eventually(t, "a comparison with the broker's list", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.checks) == 1
	})
	if a, early := h.ackWithin(50 * time.Millisecond); early {
		t.Errorf("ack %+v before the broker's word", a)
	}
	s.Observe(h.id, began(1))
	h.wantAck("a", 0)
	if p := h.presence(); !p.Online || string(p.Firmware) != `{"version":"1.0"}` ||
		p.Network == nil {
		t.Errorf("presence %+v", p)
	}
	h.events("a", 1, 1)
	h.wantAck("a", 1)
	h.wantEventLog("connected 1")
}

// TestHelloWithoutTheBroker: the broker's word does not come. The hub's second hello has its ack
// all the same.
func TestHelloWithoutTheBroker(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	r.shard(h.id)
	h.helloOnce("a", 1, 0)
	h.helloOnce("a", 1, 0)
	h.wantAck("a", 0)
	if a, more := h.ackWithin(50 * time.Millisecond); more {
		t.Errorf("a second ack %+v", a)
	}
}

// TestPresenceWriters: two processes hear of each transition, each thinking that it is alone. It is
// told once.
func TestPresenceWriters(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	writers := []*running{r.shard(h.id), r.shard(h.id)}
	want := ""
	for cid := uint64(1); cid <= 10; cid++ {
		for _, o := range []presence.Observation{began(cid), ended(cid, "read error")} {
			for _, s := range writers {
				s.Observe(h.id, o)
			}
			h.hello("a", 1, 0) // what they answer comes after what they were told before
			h.wantAck("a", 0)
			h.wantAck("a", 0)
		}
		want += " connected disconnected:read_error"
	}
	h.wantEventLog(want[1:])
	if r.count("conflicts_total") == 0 {
		t.Error("they never met")
	}
}
