package streams_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// Acks that a replica had sent into an interrupted network arrived when the network was back,
// seconds after another replica had acknowledged later events. Acks on one connection of a hub must
// not go backwards.
func TestFencedConnDiscardsUnsentMessages(t *testing.T) {
	t.Parallel()
	broker := streamstest.New(t)
	hub := broker.Connect(t).Shards[1]
	sub, err := hub.SubscribeSync("ack")
	streamstest.Must(t, err)
	streamstest.Must(t, hub.Flush())
	next := func(want string) {
		t.Helper()
		if msg, err := sub.NextMsg(time.Minute); err != nil || string(msg.Data) != want {
			t.Fatalf("message: got %v, error %v, want %q", msg, err, want)
		}
	}
	between := streamstest.NewNetwork(t, broker)
	conns := between.Connect(t)
	var allowed atomic.Bool
	allowed.Store(true)
	open := func() *streams.FencedConn {
		t.Helper()
		conn, err := conns.OpenFencedConn(t.Context(), 1, allowed.Load)
		streamstest.Must(t, err)
		return conn
	}

	publish := func(conn *streams.FencedConn, subject string, data []byte) {
		t.Helper()
		streamstest.Must(t, conn.Publish(subject, data))
	}

	conn := open()
	publish(conn, "ack", []byte("first"))
	next("first")
	publish(conn, "ack", []byte("second"))
	conn.Close() // returns once the broker has the message
	next("second")

	conn = open()
	between.Hold(true)
	// More than fits into the buffers of the network, so that the next message stays on this side.
	filler := make([]byte, 16<<10)
	for range 32 {
		publish(conn, "filler", filler)
	}
	publish(conn, "ack", []byte("late"))
	<-time.After(200 * time.Millisecond) // the connection writes it to its socket in the meantime
	conn.Cut()
	between.Hold(false)
	if msg, err := sub.NextMsg(2 * time.Second); err == nil {
		t.Errorf("got %q after the connection was cut", msg.Data)
	}
	if err := conn.Publish("ack", []byte("never")); err == nil {
		t.Error("Publish after Cut: nil; want an error")
	}

	// A connection that may no longer send returns an error and sends nothing.
	conn = open()
	allowed.Store(false)
	if err := conn.Publish("ack", []byte("never")); err == nil {
		t.Error("Publish while not allowed: nil; want an error")
	}
	conn.Close()
	if msg, err := sub.NextMsg(200 * time.Millisecond); err == nil {
		t.Errorf("got %q from a connection that may no longer send", msg.Data)
	}
}

// Acks went to a server that was cut off from the others until the end of the outage: nothing
// watched their connection.
func TestFencedConnLeavesAnIsolatedServer(t *testing.T) {
	t.Parallel()
	var dials countingDialer
	conns := streamstest.NewNetwork(t, streamstest.New(t)).Connect(t, nats.SetCustomDialer(&dials))
	conn, err := conns.OpenFencedConn(t.Context(), 1, func() bool { return true })
	streamstest.Must(t, err)
	defer conn.Close()
	opened := dials.Load()
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() { conn.LeaveIsolated(ctx, func(string) bool { return true }) })
	streamstest.Eventually(t, "the connection is opened again", func() bool {
		return dials.Load() > opened
	})
}

// countingDialer counts the connections that are opened.
type countingDialer struct{ atomic.Int32 }

// Dial implements nats.CustomDialer.
func (d *countingDialer) Dial(network, address string) (net.Conn, error) {
	d.Add(1)
	return net.Dial(network, address)
}
