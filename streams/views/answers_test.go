package views

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams/journal"
	"hubcloud/streams/streamstest"
)

// TestLostAnswers loses the broker's answers to records for a while. The records must be stored
// once, and others meanwhile.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	rewriter := streamstest.NewRewriter(f.broker)
	f.own = f.broker.Connect(t, nats.InProcessServer(rewriter))
	f.start()
	all := hubs(8)
	f.commit(all...)
	f.flush()
	var lost atomic.Int32
	rewriter.Change(func(payload []byte) []byte {
		ack := []byte(`{"stream":"HUB_` + hub(1) + `"`)
		if bytes.HasPrefix(payload, ack) && lost.Add(1) <= 2 {
			return nil
		}
		return append([]byte{}, payload...)
	})
	f.commit(append(all, hub(1), hub(1))...)
	f.commit(all...)
	f.flush()
	f.checkAll(all...)
	if got := lost.Load(); got < 2 {
		t.Errorf("answers lost: got %d, want 2", got)
	}
	// On a busy machine other answers may be late too, and then a view is compared or written again.
	if got := f.value(f.metrics.failures); got < 1 {
		t.Errorf("failures: got %d, want at least 1", got)
	}
}

// Runs that were given up left room among what is on its way, but nobody was woken for it: views
// that had waited for the room got their records only once some view of their shard had another
// record.
func TestRoomAfterLostAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.followed()
	v, err := New(Config{
		Conns: f.conns, Journal: f.journal, Retention: testRetention, IsReleased: notReleased,
	})
	streamstest.Must(t, err)
	g, err := newGroup(v, 0) // nobody runs it, so nothing is answered
	streamstest.Must(t, err)
	defer g.close()
	s := g.shards[0]
	for n, found := 0, 0; found < 40; n++ {
		if id := hub(n); g.shardOf(id) == s {
			s.view(id).current = true
			g.received([]journal.Commit{f.commitSized(maxRunBytes/5, id, id, id, id, id)})
			found++
		}
	}
	for s.nextRun() != nil {
	}
	if !s.blocked {
		t.Fatal("all runs are on their way: want some views to wait for room")
	}
	<-s.wake
	s.failOverdue(time.Now().Add(2 * answerTimeout))
	select {
	case <-s.wake:
	default:
		t.Error("runs were given up: nobody was woken for the views that wait for room")
	}
}

// TestBacklog stops the broker's answers while records are committed. The memory that they take
// must be bounded, and everything must be written once the broker answers again.
func TestBacklog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	network := streamstest.NewNetwork(t, f.broker)
	f.own = network.Connect(t)
	const limit = 1 << 20
	f.cfg.MaxBacklogBytes = limit
	f.start()
	all := hubs(20)
	f.commit(all...)
	f.flush()
	network.Hold(true)
	for range 100 { // three times the limit
		f.commitSized(1000, all...)
		if used := f.value(f.metrics.backlogBytes); used > limit {
			t.Fatalf("backlog: has %d bytes, want at most %d", used, limit)
		}
	}
	streamstest.Eventually(t, "the backlog is full", func() bool {
		return f.value(f.metrics.backlogBytes) > limit/2
	})
	network.Hold(false)
	f.flush()
	f.checkAll(all...)
}
