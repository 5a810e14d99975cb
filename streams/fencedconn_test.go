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
func TestFencedConnDiscardsUnsentMessages(t *testing.T) {
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
	open := func() *streams.FencedConn {
		t.Helper()
		conn, err := conns.OpenFencedConn(t.Context(), 1, allowed.Load)
		if err != nil {
			t.Fatal(err)
		}
		return conn
	}

	conn := open()
	if err := conn.Publish("ack", []byte("first")); err != nil {
		t.Fatal(err)
	}
	next("first")
	if err := conn.Publish("ack", []byte("second")); err != nil {
		t.Fatal(err)
	}
	conn.Close() // confirmed before it ends
	next("second")

	conn = open()
	between.Hold(true)
	// More than the network takes in: what comes after it waits on this side.
	filler := make([]byte, 16<<10)
	for range 32 {
		if err := conn.Publish("filler", filler); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Publish("ack", []byte("late")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // it leaves the process in its own time
	conn.Cut()
	between.Hold(false)
	if msg, err := sub.NextMsg(2 * time.Second); err == nil {
		t.Errorf("got %q after the connection was cut", msg.Data)
	}
	if err := conn.Publish("ack", []byte("never")); err == nil {
		t.Error("Publish after Cut: nil; want an error")
	}

	// One that may not send any more says so, and is not connected again.
	conn = open()
	allowed.Store(false)
	if err := conn.Publish("ack", []byte("never")); err == nil {
		t.Error("Publish while not allowed: nil; want an error")
	}
	conn.Close()
	if msg, err := sub.NextMsg(200 * time.Millisecond); err == nil {
		t.Errorf("heard %q", msg.Data)
	}
}
