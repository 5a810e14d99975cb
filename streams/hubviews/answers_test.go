package hubviews

import (
	"bytes"
	"sync/atomic"
	"testing"

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
