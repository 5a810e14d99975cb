package streams_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// A replica that was cut off from its broker in the midst of a write did not notice for a minute:
// the write held the connection, and whoever judged the connection asked it for its server's name.
// Streams of the replica went on without a word.
func TestReachNoticesACutInTheMidstOfAWrite(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	between := newNetwork(t, broker)
	credentials := broker.Credentials()
	credentials.URL = "nats://" + between.Addr().String()
	conns, err := streams.Connect(
		t.Context(), credentials, streams.WithLog(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	reach := streams.NewReach(slog.New(slog.DiscardHandler), conns)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = reach.Run(ctx) })
	writing := make(chan struct{})
	defer func() {
		stop()
		between.hold(false)
		running.Wait()
		<-writing
	}()

	between.hold(true)
	cut := time.Now()
	go func() { // more than the system keeps for a connection
		defer close(writing)
		for range 64 {
			if err := conns.Cloud.Publish("into.the.void", make([]byte, 512<<10)); err != nil ||
				ctx.Err() != nil {
				return
			}
		}
	}()
	noticed := make(chan struct{})
	go func() {
		defer close(noticed)
		for !reach.CutOff() && ctx.Err() == nil {
			time.Sleep(20 * time.Millisecond)
		}
	}()
	select {
	case <-noticed:
		t.Logf("noticed after %s", time.Since(cut).Round(time.Millisecond))
	case <-time.After(30 * time.Second):
		t.Error("not noticed within 30 s")
	}
}
