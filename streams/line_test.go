package streams_test

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// Acks that a replica had sent into a network that was cut arrived when it was mended, seconds
// after another replica had acknowledged more: within one connection of the hub, acks went
// backwards.
func TestLineTakesBackWhatIsNotSent(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	hub := broker.Connect(t).Shards[1]
	sub, err := hub.SubscribeSync("ack")
	if err != nil {
		t.Fatal(err)
	}
	if err := hub.Flush(); err != nil {
		t.Fatal(err)
	}
	next := func(want string) {
		t.Helper()
		msg, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if string(msg.Data) != want {
			t.Fatalf("heard %q, wanted %q", msg.Data, want)
		}
	}
	between := streamstest.NewNetwork(t, broker)
	conns, err := streams.Connect(
		t.Context(), between.Credentials(), streams.WithLog(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	var allowed atomic.Bool
	allowed.Store(true)
	open := func() *streams.Line {
		t.Helper()
		line, err := conns.OpenLine(t.Context(), 1, allowed.Load)
		if err != nil {
			t.Fatal(err)
		}
		return line
	}

	line := open()
	if err := line.Publish("ack", []byte("first")); err != nil {
		t.Fatal(err)
	}
	next("first")
	if err := line.Publish("ack", []byte("second")); err != nil {
		t.Fatal(err)
	}
	line.Close() // confirmed before it ends
	next("second")

	line = open()
	between.Hold(true)
	// More than the network takes in: what comes after it waits on this side.
	filler := make([]byte, 16<<10)
	for range 32 {
		if err := line.Publish("filler", filler); err != nil {
			t.Fatal(err)
		}
	}
	if err := line.Publish("ack", []byte("late")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // it leaves the process in its own time
	line.Cut()
	between.Hold(false)
	if msg, err := sub.NextMsg(2 * time.Second); err == nil {
		t.Errorf("heard %q after the line was cut", msg.Data)
	}
	if err := line.Publish("ack", []byte("never")); err == nil {
		t.Error("a line that is cut takes a message")
	}

	// One that may not send any more says so, and is not connected again.
	line = open()
	allowed.Store(false)
	if err := line.Publish("ack", []byte("never")); err == nil {
		t.Error("a line that is not allowed to takes a message")
	}
	line.Close()
	if msg, err := sub.NextMsg(200 * time.Millisecond); err == nil {
		t.Errorf("heard %q", msg.Data)
	}
}
