package ingest_test

import (
	"log/slog"
	"testing"
	"time"

	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/streamstest"
)

// TestReadyOnceSubscribed holds that a shard is ready only when the broker has confirmed its
// subscriptions. A shard used to be ready also when the broker had not answered.
func TestReadyOnceSubscribed(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	r.broker.Stop()
	log := &logLines{}
	s := r.start(
		h.id, func(c *ingest.Config) { c.Logger = slog.New(slog.NewJSONHandler(log, nil)) },
	)
	streamstest.Eventually(t, "the missing confirmation is logged", func() bool {
		return len(log.of(t, "subscriptions not confirmed; trying again")) > 0
	})
	select {
	case <-s.ready:
		t.Error("the shard is ready, want it to wait for the broker")
	case <-time.After(100 * time.Millisecond):
	}
	r.broker.Start(t)
	<-s.ready
	h.hello("a", 1, 0)
	h.wantAck("a", 0)
}

// TestStopWhileNotSubscribed holds that a shard whose subscriptions are not confirmed can be
// stopped.
func TestStopWhileNotSubscribed(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	r.broker.Stop()
	s := r.start(h.id)
	s.stop()
	select {
	case <-s.ready:
		t.Error("the shard was ready, want it to end without")
	default:
	}
	r.broker.Start(t)
}
