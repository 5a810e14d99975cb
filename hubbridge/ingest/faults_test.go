package ingest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

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
	ctx context.Context, hub domain.HubID, expected uint64, records []journal.Record,
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

// TestNoAckWithoutStorage holds that events that could not be stored are not acknowledged, that the
// hub is asked for them soon, and that they are stored once storage works again. Hubs waited for five
// seconds after each loss of a leader.
func TestNoAckWithoutStorage(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	r.shard(h.id, withLogs(logs))
	h.helloAcked("a", 1, 0, 0)
	logs.set(func() error { return errors.New("the disk is full") }, nil)
	h.events("a", 1, 3)
	h.wantAck("a", 0)
	logs.set(nil, nil)
	h.events("a", 1, 3) // the hub sends again
	h.wantAck("a", 3)
	h.wantEventLog("1 2 3")
	if got := r.count("acks_withheld_total"); got != 1 {
		t.Errorf("acks withheld counted: got %v, want 1", got)
	}
}

// A hello that could not be handled was dropped, and the hub repeated it after five seconds.
func TestHelloIsKept(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	s := r.shard(h.id, withLogs(logs))
	h.helloAcked("a", 1, 0, 0)
	s.Observe(h.id, began(1))
	streamstest.Eventually(t, "the hub is online", func() bool { return h.presence().Online })
	logs.set(once(errors.New("no leader")), nil)
	h.helloOnce("a", 3, 4) // 1 and 2 are lost: there is something to store
	h.wantAck("a", 2)
}

// Events that were sent while no replica served the shard waited until the hub repeated them.
func TestWaitingHubsAreAsked(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.helloAcked("a", 1, 0, 0)
	h.eventsAcked("a", 1, 3)
	s.kill()
	h.events("a", 4, 5)
	r.shard(h.id, func(cfg *ingest.Config) {
		cfg.Waiting = func() []domain.HubID { return []domain.HubID{h.id} }
	})
	h.wantAck("a", 3)
}

// TestNothingWithoutTheLease holds that a process without the lease sends no ack and writes no
// presence. A holder that was suspended for longer than its lease must not continue when it wakes:
// its ack would come after the next holder has acknowledged more, and it would write an old presence.
func TestNothingWithoutTheLease(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	var asleep atomic.Bool
	late := r.shard(
		h.id, withLogs(logs),
		func(cfg *ingest.Config) {
			cfg.Serving = func() bool { return !asleep.Load() }
			cfg.LeaseHeld = cfg.Serving
		},
	)
	h.helloAcked("a", 1, 0, 0)

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
	h.eventsAcked("a", 4, 5)
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
