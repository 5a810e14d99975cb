package ingest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"hubcloud/hubbridge/ingest"
	"hubcloud/streams/streamstest"
)

// TestReadyOnceSubscribed holds that a shard is ready only when the broker has confirmed its
// subscriptions, and can be stopped before.
func TestReadyOnceSubscribed(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	r.broker.Stop()
	log := &streamstest.LogLines{}
	s := r.start(
		h.id, func(c *ingest.Config) { c.Logger = log.Logger() },
	)
	streamstest.Eventually(t, "the missing confirmation is logged", func() bool {
		return len(log.Of(t, "subscriptions not confirmed; trying again")) > 0
	})
	select {
	case <-s.ready:
		t.Error("the shard is ready, want it to wait for the broker")
	case <-time.After(100 * time.Millisecond):
	}
	s.stop()
	s = r.start(h.id)
	r.broker.Start(t)
	<-s.ready
	h.helloAcked("a", 1, 0, 0)
}

// TestShutdownFinishes holds that a shard that is stopped stores and acknowledges the messages that
// it has received, and writes the checkpoint.
func TestShutdownFinishes(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h := adopted(r)
	s := r.shard(h.id)
	h.helloAcked("a", 1, 0, 0)
	for seq := uint64(1); seq <= 200; seq++ {
		h.events("a", seq, seq)
	}
	streamstest.Eventually(t, "the first ack", func() bool { return len(h.acks) > 0 })
	s.stop()
	// After both, the hub has all acks that the shard has sent.
	streamstest.Must(t, errors.Join(r.Conns.Shard(h.id).Flush(), h.nc.Flush()))
	acks := map[uint64]bool{}
	for len(h.acks) > 0 {
		acks[h.ack().Through] = true
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

// TestLargeMessagesThatWait holds that messages that wait are stored, also when all of them together
// are larger than a commit of the journal may be.
func TestLargeMessagesThatWait(t *testing.T) {
	t.Parallel()
	r := newTestIngest(t, time.Hour)
	h, logs := adopted(r), &faultyLogs{}
	r.shard(h.id, withLogs(logs))
	h.helloAcked("a", 1, 0, 0)
	appending, proceed := make(chan struct{}), make(chan struct{})
	logs.set(func() error {
		appending <- struct{}{}
		<-proceed
		return nil
	}, nil)
	h.events("a", 1, 1)
	<-appending
	logs.set(nil, nil)
	large := strings.Repeat("x", 12_000)
	through := []uint64{1}
	for seq := uint64(2); len(through) < 5; {
		var events []string
		for range 20 {
			events = append(events, strings.Replace(event(seq), `"value":`, `"text":"`+large+`","value":`, 1))
			seq++
		}
		h.sendEvents("a", events...)
		through = append(through, seq-1)
	}
	streamstest.Eventually(t, "the messages wait", func() bool {
		return r.count("inbox_bytes") > 900_000
	})
	close(proceed)
	for _, number := range through {
		h.wantAck("a", number)
	}
}
