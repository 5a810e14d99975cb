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
	"hubcloud/streams/disk"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// After a full disk nothing was stored until the process was restarted, because nats-server keeps a
// stream's write error. The broker must recover by itself once the disk has space, on the same
// addresses and with every acknowledged message.
func TestRecoversFromAFullDisk(t *testing.T) {
	t.Parallel()
	dir := streamstest.SmallDisk(t, 48<<20)
	cfg := config(t, dir)
	space, err := disk.OpenGuard(dir, disk.Reserve{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer streamstest.Run(t, "disk space guard", space.Run)()
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
	// One writer of single messages and one of batches, without pauses.
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
					msgs = append(msgs, &nats.Msg{
						Subject: fmt.Sprintf("log.%d", writer),
						Data:    fmt.Appendf(nil, "%d %d %d %0400d", writer, n, i, n),
					})
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
		streamstest.Eventually(t, "a message is stored", func() bool { return stored(t, conns) })
		empty := streamstest.FillDisk(t, dir)
		streamstest.Eventually(t, "the broker reports a failed write", func() bool {
			_, since := s.StoreFailed()
			return !since.IsZero()
		})
		empty()
		began := time.Now()
		streamstest.Eventually(
			t, "a message is stored again", func() bool { return stored(t, conns) },
		)
		t.Logf(
			"round %d: storing again %v after the disk had space", round,
			time.Since(began).Round(time.Millisecond),
		)
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("time until a message is stored again: got %v, want at most 30s", took)
		}
	}
	stopWriting()
	writers.Wait()
	if s.NATSAddr() != natsAddr || s.MQTTAddr() != mqttAddr {
		t.Errorf(
			"addresses after the restarts: got %s and %s, want %s and %s", s.NATSAddr(),
			s.MQTTAddr(), natsAddr, mqttAddr,
		)
	}
	// Every acknowledged message is stored exactly once.
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
			t.Errorf("message %.20s is stored twice", msg.Data)
		}
		seen[string(msg.Data)] = true
	}
	for writer, all := range acknowledged {
		if len(all) == 0 {
			t.Errorf("writer %d: got no acknowledgement", writer)
		}
		for text := range all {
			if !seen[text] {
				t.Errorf("message %.20s was acknowledged and is lost", text)
			}
		}
	}
	t.Logf(
		"%d and %d messages acknowledged, %d stored", len(acknowledged[0]), len(acknowledged[1]),
		len(seen),
	)
}

// stored reports whether the stream LOG stores a message now.
func stored(t *testing.T, conns *streams.Conns) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := jsapi.Append(
		ctx, conns.Shards[1],
		&nats.Msg{Subject: "log.probe", Data: fmt.Append(nil, time.Now().UnixNano())},
	)
	return err == nil
}
