package hubviews

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

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
	f.write(all...)
	f.flush()
	var lost atomic.Int32
	rewriter.Change(func(payload []byte) []byte {
		ack := []byte(`{"stream":"HUB_` + hub(1) + `"`)
		if bytes.HasPrefix(payload, ack) && lost.Add(1) <= 2 {
			return nil
		}
		return append([]byte{}, payload...)
	})
	f.write(append(all, hub(1), hub(1))...)
	f.write(all...)
	f.flush()
	for _, id := range all {
		f.check(id, 1)
	}
	if got := lost.Load(); got < 2 {
		t.Errorf("answers lost: got %d, want 2", got)
	}
	if got := f.count(f.Views.cfg.Metrics.failures); got != 1 {
		t.Errorf("failures: got %d, want 1", got)
	}
	if got := f.count(f.Views.cfg.Metrics.rebuilds); got != 0 {
		t.Errorf("rebuilds: got %d, want 0", got)
	}
}

// Runs that were given up left room among what is on its way, but nobody was woken for it: views that
// had waited for the room got their records only once some view of their shard had another record.
func TestRoomAfterLostAnswers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	f.stop()
	f.cfg.Conns, f.cfg.Index, f.cfg.Reader, f.cfg.Positions = f.conns, f.index, f.reader, f.bucket
	f.cfg.From, f.cfg.Retention = f.End(), testRetention
	views, err := New(t.Context(), f.cfg) // nobody runs it, so nothing is answered
	if err != nil {
		t.Fatal(err)
	}
	defer views.close()
	f.Views = views
	s := views.shards[0]
	for n, found := 0, 0; found < 40; n++ {
		if id := hub(n); views.shardOf(id) == s {
			s.view(id).state = stateCurrent
			f.add(f.commitSized(maxRunBytes/5, id, id, id, id, id))
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

// TestBrokerRestart restarts the broker while records are added.
func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	all := hubs(8)
	f.write(all...)
	f.flush()
	first, second := f.commit(all...), f.commit(all...)
	f.broker.Stop()
	f.add(first)
	f.broker.Start(t)
	f.add(second)
	f.flush()
	for _, id := range all {
		f.check(id, 1)
	}
}
