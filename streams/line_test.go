package streams_test

import (
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hubcloud/streams"
	"hubcloud/streams/streamstest"
)

// network is what lies between a client and the broker. While it is held nothing gets through, and
// nobody is told.
type network struct {
	net.Listener
	broker *streamstest.Broker

	mu      sync.Mutex
	free    *sync.Cond
	held    bool
	copying sync.WaitGroup
}

func newNetwork(t *testing.T, broker *streamstest.Broker) *network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &network{Listener: listener, broker: broker}
	n.free = sync.NewCond(&n.mu)
	n.copying.Go(n.run)
	t.Cleanup(func() {
		listener.Close()
		n.hold(false)
		n.copying.Wait()
	})
	return n
}

func (n *network) run() {
	for {
		client, err := n.Accept()
		if err != nil {
			return
		}
		server, err := n.broker.InProcessConn()
		if err != nil {
			client.Close()
			continue
		}
		n.copying.Go(func() { n.copy(server, client) })
		n.copying.Go(func() { n.copy(client, server) })
	}
}

func (n *network) copy(to io.WriteCloser, from io.ReadCloser) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 4096)
	for {
		n.mu.Lock()
		for n.held {
			n.free.Wait()
		}
		n.mu.Unlock()
		count, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:count]); err != nil {
			return
		}
	}
}

func (n *network) hold(held bool) {
	n.mu.Lock()
	n.held = held
	n.mu.Unlock()
	n.free.Broadcast()
}

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
	between.hold(true)
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
	between.hold(false)
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
