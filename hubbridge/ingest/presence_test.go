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

// wantOnline waits until the presence bucket shows the hub online, or offline, and returns the
// hub's presence.
func (h *hub) wantOnline(online bool) (p domain.Presence) {
	h.r.t.Helper()
	streamstest.Eventually(h.r.t, fmt.Sprintf("presence with online %v", online), func() bool {
		p = h.presence()
		return p.Online == online && p.HubID == h.id
	})
	return p
}

func TestTransitionsAreRecorded(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	s.Observe(h.id, began(1))
	p := h.wantOnline(true)
	if p.PublicIP != "10.0.0.7" || p.Reason != nil || p.Connection.CID != 1 || time.Since(p.Since) > time.Minute {
		t.Errorf("presence %+v, want connection 1 from 10.0.0.7 without a reason", p)
	}
	h.helloAcked("a", 1, 1, 0)
	s.Observe(h.id, ended(1, "client closed"))
	p = h.wantOnline(false)
	if p.PublicIP != "10.0.0.7" || p.Reason == nil || *p.Reason != "client closed" ||
		string(p.Firmware) != `{"version":"1.0"}` {
		t.Errorf("presence %+v, want client closed, firmware 1.0 and 10.0.0.7", p)
	}
	s.Observe(h.id, began(2))
	s.Observe(h.id, ended(2, ""))
	s.Observe(h.id, began(3))
	h.eventsAcked("a", 1, 1)
	h.wantEventLog("connected disconnected:client_closed connected disconnected:null connected 1")
	if got := r.count("presence_transitions_total", "status", "online"); got != 3 {
		t.Errorf("online transitions counted: got %v, want 3", got)
	}
}

// TestTransitionOnceOverACrash holds that a transition is recorded once when the process was killed
// between the log and the bucket.
func TestTransitionOnceOverACrash(t *testing.T) {
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
		streamstest.Must(t, err)
		buckets, err := streams.OpenBuckets(t.Context(), r.Conns, 1)
		streamstest.Must(t, err)
		if _, err := buckets.Presence.Put(t.Context(), string(h.id), raw); err != nil {
			t.Fatal(err)
		}
		s = r.shard(h.id)
		// The comparison with the broker's list observes the connection again, and an old end.
		s.Observe(h.id, began(2))
		s.Observe(h.id, ended(1, ""))
		streamstest.Eventually(
			t, "the bucket has connection 2",
			func() bool { p := h.presence(); return p.Online && p.Connection.CID == 2 },
		)
		s.kill()
	}
	h.wantEventLog("connected disconnected:read_error connected")
}

// TestObservationsOutliveFailures holds that observations are kept until they can be stored: the
// broker does not repeat them.
func TestObservationsOutliveFailures(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	s := r.shard(h.id, withLogs(logs))
	logs.set(func() error { return errors.New("the disk is full") }, nil)
	s.Observe(h.id, began(1))
	s.Observe(h.id, ended(1, "kicked"))
	s.Observe(h.id, began(2))
	streamstest.Eventually(t, "the session exists", func() bool { return r.count("sessions") == 1 })
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

// TestAddedWhileConnected holds that the log of a hub that is connected when it is added has no
// hub.connected for that connection, but every later transition.
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
			h.helloAcked("a", 1, 0, 0)
			h.adopt()
			if restart {
				s.kill()
				s = r.shard(h.id)
				s.Observe(h.id, began(2))
			}
			h.eventsAcked("a", 1, 1)
			s.Observe(h.id, ended(2, "client closed"))
			h.wantOnline(false)
			h.wantEventLog("1 disconnected:client_closed")
		})
	}
}

// TestHelloBeforeTheBroker holds that a hello that comes before the broker's report of the
// connection is acknowledged after the report. Otherwise an organization that adds the hub at once
// would see a hub that was never online.
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
		t.Errorf("ack %+v before the broker reported the connection", a)
	}
	s.Observe(h.id, began(1))
	h.wantAck("a", 0)
	if p := h.presence(); !p.Online || string(p.Firmware) != `{"version":"1.0"}` || p.Network == nil {
		t.Errorf("presence %+v, want online with firmware 1.0 and a network", p)
	}
	h.eventsAcked("a", 1, 1)
	h.wantEventLog("connected 1")
}

// TestPresenceWriters holds that two processes that serve the same hub record each transition once.
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
			h.hello("a", 1, 0) // both answer after they have recorded the observation
			h.wantAck("a", 0)
			h.wantAck("a", 0)
		}
		want += " connected disconnected:read_error"
	}
	h.wantEventLog(want[1:])
	if r.count("conflicts_total") == 0 {
		t.Error("conflicts_total is 0: the writers did not conflict")
	}
}

// began returns the observation that a connection has begun.
func began(cid uint64) presence.Observation {
	return presence.Observation{
		Connection: domain.Connection{Server: "S", CID: cid, Start: time.Unix(int64(cid), 0).UTC()},
		IP:         "10.0.0.7",
	}
}

// ended returns the observation that a connection has ended, with the broker's reason; "" for none.
func ended(cid uint64, reason string) presence.Observation {
	o := presence.Observation{
		Connection: domain.Connection{Server: "S", CID: cid, Start: time.Unix(int64(cid), 0).UTC()},
		Ended:      true,
	}
	if reason != "" {
		o.Reason = &reason
	}
	return o
}
