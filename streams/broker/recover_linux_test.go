package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
	"hubcloud/streams/diskspace"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// After a full disk nothing was stored any more until the process was restarted: nats-server keeps
// a stream's write error. The broker comes back by itself once there is room, on the same
// addresses, with everything that it had acknowledged.
func TestAFullDiskIsSurvived(t *testing.T) {
	t.Parallel()
	dir := streamstest.SmallDisk(t, 48<<20)
	cfg := config(t, dir)
	space, err := diskspace.Open(dir, diskspace.Reserve{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	measuring, stopMeasuring := context.WithCancel(t.Context())
	var measured sync.WaitGroup
	measured.Go(func() { _ = space.Run(measuring) }) // ends with measuring
	defer func() {
		stopMeasuring()
		measured.Wait()
	}()
	cfg.Space = space
	s := start(t, cfg)
	defer stop(t, s)
	conns := connect(t, s)
	natsAddr, mqttAddr := s.NATSAddr(), s.MQTTAddr()

	js, err := jetstream.New(conns.Shards[1])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "LOG", Subjects: []string{"log.>"}, AllowAtomicPublish: true, AllowDirect: true,
	}); err != nil {
		t.Fatal(err)
	}
	// One writer of single messages, and one of batches, without a pause.
	acknowledged := make([]map[string]bool, 2)
	writing, stopWriting := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for writer, batch := range []int{1, 20} {
		acknowledged[writer] = map[string]bool{}
		writers.Go(func() {
			retry := time.NewTicker(10 * time.Millisecond)
			defer retry.Stop()
			for n := 0; writing.Err() == nil; n++ {
				var msgs []*nats.Msg
				for i := range batch {
					msgs = append(
						msgs,
						&nats.Msg{
							Subject: fmt.Sprintf("log.%d", writer),
							Data:    fmt.Appendf(nil, "%d %d %d %0400d", writer, n, i, n),
						},
					)
				}
				ctx, cancel := context.WithTimeout(writing, time.Second)
				if _, err := jsapi.Append(ctx, conns.Shards[1], msgs...); err == nil {
					for _, msg := range msgs {
						acknowledged[writer][string(msg.Data)] = true
					}
				} else {
					<-retry.C
				}
				cancel()
			}
		})
	}
	const rounds = 2
	for round := range rounds {
		streamstest.Eventually(t, "something is stored", func() bool { return stored(t, conns) })
		empty := streamstest.FillDisk(t, dir)
		streamstest.Eventually(t, "the broker says that its store has failed", func() bool {
			_, since := s.StoreFailed()
			return !since.IsZero()
		})
		empty()
		began := time.Now()
		streamstest.Eventually(
			t, "something is stored again", func() bool { return stored(t, conns) },
		)
		t.Logf(
			"round %d: storing again %v after there was room", round,
			time.Since(began).Round(time.Millisecond),
		)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("storing again took %v", took)
		}
	}
	stopWriting()
	writers.Wait()
	if s.NATSAddr() != natsAddr || s.MQTTAddr() != mqttAddr {
		t.Errorf(
			"other addresses than before: %s, %s; want %s, %s", s.NATSAddr(), s.MQTTAddr(),
			natsAddr, mqttAddr,
		)
	}
	// Everything acknowledged is there once, and in order.
	stream, err := js.Stream(t.Context(), "LOG")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	info := stream.CachedInfo().State
	for seq := info.FirstSeq; seq <= info.LastSeq; seq++ {
		msg, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatalf("message %d of %d: %v", seq, info.LastSeq, err)
		}
		if seen[string(msg.Data)] {
			t.Errorf("%.20s is there twice", msg.Data)
		}
		seen[string(msg.Data)] = true
	}
	for writer, all := range acknowledged {
		if len(all) == 0 {
			t.Errorf("writer %d stored nothing", writer)
		}
		for text := range all {
			if !seen[text] {
				t.Errorf("%.20s was acknowledged and is lost", text)
			}
		}
	}
	t.Logf(
		"%d and %d messages acknowledged, %d there", len(acknowledged[0]), len(acknowledged[1]),
		len(seen),
	)
}

// stored reports whether the stream LOG takes a message now.
func stored(t *testing.T, conns *streams.Conns) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := jsapi.Append(
		ctx, conns.Shards[1],
		&nats.Msg{Subject: "log.probe", Data: fmt.Append(nil, time.Now().UnixNano())},
	)
	return err == nil
}
