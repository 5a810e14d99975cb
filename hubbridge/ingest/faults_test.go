package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/hublog"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// emptyView is a view of the directory that has no hubs.
type emptyView struct{}

func (emptyView) Hub(domain.HubID) (domain.HubAccess, bool) { return domain.HubAccess{}, false }

// faultyLogs are logs whose appends fail as a test sets them.
type faultyLogs struct {
	ingest.Logs
	mu sync.Mutex
	// before runs before an append, which does not happen if before fails. after runs after an
	// append, whose result is lost if after fails. Nil functions succeed.
	before, after func() error
}

func (l *faultyLogs) set(before, after func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.before, l.after = before, after
}

func (l *faultyLogs) Append(
	ctx context.Context, hub domain.HubID, expected uint64, records []hublog.Record,
) (uint64, error) {
	l.mu.Lock()
	before, after := l.before, l.after
	l.mu.Unlock()
	if before != nil {
		if err := before(); err != nil {
			return 0, err
		}
	}
	last, err := l.Logs.Append(ctx, hub, expected, records)
	if err == nil && after != nil {
		err = after()
	}
	return last, err
}

func withLogs(logs *faultyLogs) change {
	return func(cfg *ingest.Config) { logs.Logs, cfg.Logs = cfg.Logs, logs }
}

// once returns a function that returns err at its first call and nil later.
func once(err error) func() error {
	var done sync.Once
	return func() (now error) {
		done.Do(func() { now = err })
		return now
	}
}

// TestNoAckWithoutStorage holds that events that could not be stored are not acknowledged, and that
// they are stored once storage works again.
func TestNoAckWithoutStorage(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	r.shard(h.id, withLogs(logs))
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	logs.set(func() error { return errors.New("the disk is full") }, nil)
	h.events("a", 1, 3)
	if got, ok := h.ackWithin(200 * time.Millisecond); ok {
		t.Fatalf("ack %+v, want none: the events are not stored", got)
	}
	logs.set(nil, nil)
	h.events("a", 1, 3) // the hub sends again
	h.wantAck("a", 3)
	h.wantEventLog("1 2 3")
	if got := r.count("acks_withheld_total"); got != 1 {
		t.Errorf("acks withheld counted: got %v, want 1", got)
	}
}

// TestNothingWithoutTheLease holds that a process without the lease sends no ack and writes no
// presence. Once, a holder that was suspended for longer than its lease continued when it woke: its
// ack came after the next holder had acknowledged more, and it wrote an old presence.
func TestNothingWithoutTheLease(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	var asleep atomic.Bool
	late := r.shard(
		h.id, withLogs(logs),
		func(cfg *ingest.Config) { cfg.LeaseHeld = func() bool { return !asleep.Load() } },
	)
	h.hello("a", 1, 0)
	h.wantAck("a", 0)

	stored, wake := make(chan struct{}), make(chan struct{})
	logs.set(nil, func() error { // suspended between the broker's answer and the ack
		close(stored)
		<-wake
		return nil
	})
	h.events("a", 1, 3)
	<-stored
	asleep.Store(true)
	logs.set(nil, nil)
	next := r.shard(h.id) // receives the hub's messages too
	h.events("a", 4, 5)
	h.wantAck("a", 5)
	close(wake)
	h.events("a", 4, 5) // both receive the repeat
	h.wantAck("a", 5)
	late.Shard.Observe(
		h.id,
		presence.Observation{Connection: domain.Connection{Server: "s", CID: 1, Start: time.Now()}},
	)
	if got, ok := h.ackWithin(300 * time.Millisecond); ok {
		t.Errorf("ack %+v, want none without the lease", got)
	}
	if p := h.presence(); p.Online {
		t.Errorf("presence was written without the lease: %+v", p)
	}
	if got := r.count("acks_withheld_total"); got == 0 {
		t.Error("acks_withheld_total is 0, want more")
	}
	h.wantEventLog("1 2 3 4 5")
	late.kill()
	next.stop()
}

// TestLostAnswer holds that events are stored once when the broker's answer to an append is lost,
// whether the append was stored or not.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	r.shard(h.id, withLogs(logs))
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	logs.set(nil, once(fmt.Errorf("no answer: %w", jsapi.ErrOutcomeUnknown)))
	h.events("a", 1, 3)
	h.wantAck("a", 3)
	// This append was not stored.
	logs.set(once(fmt.Errorf("no answer: %w", jsapi.ErrOutcomeUnknown)), nil)
	h.events("a", 4, 5)
	h.wantAck("a", 5)
	h.wantEventLog("1 2 3 4 5")
}

// TestBrokerRestarts holds that a restart of the broker loses and repeats nothing.
func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	events := ""
	for n := range uint64(3) {
		seq := 10*n + 1
		h.events("a", seq, seq+4)
		if n > 0 { // while events are on the way
			r.broker.Stop()
			s.Observe(h.id, began(n))
			r.broker.Start(t)
		}
		streamstest.Eventually(t, "the ack", func() bool {
			h.events("a", seq, seq+9)
			got, _ := h.ackWithin(500 * time.Millisecond)
			return got.Through == seq+9
		})
	}
	s.stop()
	for _, w := range strings.Fields(h.eventLog()) {
		if w != "connected" && !strings.HasPrefix(w, "disconnected") {
			events += w + " "
		}
	}
	if events != "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 " {
		t.Errorf("event log: got %s, want 1 to 30", events)
	}
	if p := h.presence(); !p.Online || p.Connection.CID != 1 {
		t.Errorf("presence %+v, want connection 1 online", p)
	}
}

// TestTwoWriters holds that two processes that serve the same hub store every event once.
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	r.shard(h.id)
	r.shard(h.id)
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	h.wantAck("a", 0)
	want := ""
	for seq := uint64(1); seq <= 60; seq += 3 {
		h.events("a", seq, seq+2)
		h.wantAck("a", seq+2)
		h.wantAck("a", seq+2)
		want += fmt.Sprintf("%d %d %d ", seq, seq+1, seq+2)
	}
	h.wantEventLog(want[:len(want)-1])
}

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
			h.hello("a", 1, 5)
			h.wantAck("a", 0)
			h.events("a", 1, 5)
			h.wantAck("a", 5)
			h.emptied() // the checkpoint is written long before
			end(s)
			if name != "none" {
				r.shard(h.id)
			}
			h.hello("a", 6, 5)
			h.wantAck("a", 5)
			h.events("a", 4, 7)
			h.wantAck("a", 7)
			h.wantEventLog("6 7")
			h.emptied()
			h.hello("a", 10, 10)
			h.wantAck("a", 9)
			h.wantEventLog("skip:8-9")
		})
	}
}

// TestDeadLongerThanRetention tries a process that was killed before it had written the checkpoint,
// and restarts after every event has expired. A gap within the unaccounted range is none.
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
			// The long retention has the checkpoint written late.
			s := r.shard(h.id, func(cfg *ingest.Config) { cfg.Retention = time.Hour })
			h.hello("a", 1, 2)
			h.wantAck("a", 0)
			h.events("a", 1, 2)
			h.wantAck("a", 2)
			s.stop() // writes the checkpoint
			s = r.shard(h.id, func(cfg *ingest.Config) { cfg.Retention = time.Hour })
			h.events("a", 3, 6)
			h.wantAck("a", 6)
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
			h.hello("a", tc.oldest, 8)
			h.wantAck("a", tc.oldest-1)
			if tc.oldest < 9 {
				h.events("a", tc.oldest, 7)
				h.wantAck("a", 7)
			} else {
				h.events("a", 9, 9)
				h.wantAck("a", 9)
			}
			h.wantEventLog(tc.want)
		})
	}
}

// TestResetSurvivesACrash tries a process that was killed right after it had recorded a reset in
// the directory.
func TestResetSurvivesACrash(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.hello("a", 1, 2)
	h.wantAck("a", 0)
	h.events("a", 1, 2)
	h.wantAck("a", 2)
	s.stop()
	last, err := r.HubLogs.LastSequence(t.Context(), h.id)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Directory.BeginLog(t.Context(), installationtest.Operator, h.id, domain.BeginLog{
		OwnLog: "b", Through: 4, After: last,
	}); err != nil {
		t.Fatal(err)
	}
	r.shard(h.id)
	h.events("a", 3, 3) // of the former log
	h.hello("b", 5, 6)
	h.wantAck("b", 4)
	h.events("b", 5, 6)
	h.wantAck("b", 6)
	h.wantEventLog("5 6")
	if got := r.count("resets_total"); got != 0 {
		t.Errorf("resets counted: got %v, want 0", got)
	}
}

// TestBehindTheDirectory holds that a replica whose view lacks a reset that another replica has
// recorded does not record the reset again.
func TestBehindTheDirectory(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	stale := &lagging{testIngest: r}
	r.shard(h.id, func(cfg *ingest.Config) { cfg.Ownership = stale })
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	stale.freeze(h.id)
	if err := r.Directory.BeginLog(t.Context(), installationtest.Operator, h.id, domain.BeginLog{
		OwnLog: "b", Through: 0,
	}); err != nil {
		t.Fatal(err)
	}
	h.hello("b", 1, 1)
	if got, ok := h.ackWithin(100 * time.Millisecond); ok {
		t.Errorf("ack %+v, want none while the view is behind", got)
	}
	stale.freeze("")
	h.hello("b", 1, 1)
	h.wantAck("b", 0)
	h.events("b", 1, 1)
	h.wantAck("b", 1)
	h.wantEventLog("1")
	if got := r.count("resets_total"); got != 0 {
		t.Errorf("resets counted: got %v, want 0", got)
	}
}

// lagging is a view of the directory that can be frozen for a hub.
type lagging struct {
	testIngest *testIngest
	mu         sync.Mutex
	frozen     domain.HubID
	access     domain.HubAccess
}

func (l *lagging) freeze(hub domain.HubID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = hub
	l.access, _ = l.testIngest.Hub(hub)
}

func (l *lagging) Hub(hub domain.HubID) (domain.HubAccess, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if hub == l.frozen {
		return l.access, true
	}
	return l.testIngest.Hub(hub)
}

// TestShutdownFinishes holds that a shard that is stopped stores and acknowledges the messages that
// it has received, and writes the checkpoint.
func TestShutdownFinishes(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
	for seq := uint64(1); seq <= 200; seq++ {
		h.events("a", seq, seq)
	}
	streamstest.Eventually(t, "the first ack", func() bool { return len(h.acks) > 0 })
	s.stop()
	if err := r.Conns.Shard(h.id).Flush(); err != nil {
		t.Fatal(err)
	}
	acks := map[uint64]bool{}
	for {
		got, ok := h.ackWithin(200 * time.Millisecond)
		if !ok {
			break
		}
		acks[got.Through] = true
	}
	through := uint64(0)
	for seq := range acks {
		through = max(through, seq)
	}
	var checkpoint struct {
		Log       string
		Through   uint64
		StreamSeq uint64 `json:"stream_seq"`
	}
	h.record(ingest.CheckpointBucket, &checkpoint)
	if checkpoint.Log != "a" || checkpoint.Through != through || checkpoint.StreamSeq != through {
		t.Errorf("checkpoint %+v, want log a through %d", checkpoint, through)
	}
}

// TestFlood holds that a hub that floods does not delay another hub, and that its own events are
// stored in order without gaps.
func TestFlood(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	flooding := adopted(r)
	other := adopted(r)
	for streams.ShardOf(other.id, len(r.Conns.Shards)) != streams.ShardOf(flooding.id, len(r.Conns.Shards)) {
		other = adopted(r)
	}
	r.shard(flooding.id)
	flooding.hello("f", 1, 0)
	flooding.wantAck("f", 0)
	other.hello("o", 1, 0)
	other.wantAck("o", 0)
	stop := make(chan struct{})
	var flood sync.WaitGroup
	flood.Go(func() {
		for seq := uint64(1); ; seq += 20 {
			select {
			case <-stop:
				return
			default:
				flooding.events("f", seq, seq+19)
			}
			if seq%1000 == 1 {
				_ = flooding.nc.Flush()
			}
		}
	})
	var latencies []time.Duration
	for seq := uint64(1); seq <= 100; seq++ {
		began := time.Now()
		other.events("o", seq, seq)
		other.wantAck("o", seq)
		latencies = append(latencies, time.Since(began))
	}
	close(stop)
	flood.Wait()
	slices.Sort(latencies)
	t.Logf(
		"the other hub's latency: median %v, worst %v; shed %v, dropped %v, stored %v",
		latencies[50], latencies[99], r.count("messages_shed_total"),
		r.count("messages_dropped_total"), r.count("events_stored_total"),
	)
	if latencies[50] > 2*time.Second {
		t.Errorf("the other hub's median latency is %v, want at most 2s", latencies[50])
	}
	for i, event := range strings.Fields(flooding.eventLog()) {
		if event != fmt.Sprint(i+1) {
			t.Fatalf("event %d of the flood: got number %s", i+1, event)
		}
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
