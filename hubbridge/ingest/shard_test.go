package ingest_test

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/hubbridge/ingest"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// TestReadyOnceSubscribed holds that a shard is ready only when the broker has confirmed its
// subscriptions.
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
	h.helloAcked("a", 1, 0, 0)
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
	if err := errors.Join(r.Conns.Shard(h.id).Flush(), h.nc.Flush()); err != nil {
		t.Fatal(err)
	}
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
	flooding.helloAcked("f", 1, 0, 0)
	other.helloAcked("o", 1, 0, 0)
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
		other.eventsAcked("o", seq, seq)
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
	if latencies[50] > 10*time.Second {
		t.Errorf("the other hub's median latency is %v, want at most 10s", latencies[50])
	}
	for i, event := range strings.Fields(flooding.eventLog()) {
		if event != fmt.Sprint(i+1) {
			t.Fatalf("event %d of the flood: got number %s", i+1, event)
		}
	}
}
