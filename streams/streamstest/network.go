package streamstest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"hubcloud/streams"
)

// Network is a network between clients and a server. While it is held nothing gets through and no
// connection is closed.
type Network struct {
	net.Listener
	broker *Broker
	dial   func() (net.Conn, error)

	mu      sync.Mutex
	free    *sync.Cond
	held    bool
	copying sync.WaitGroup
}

// NewNetwork returns a Network to a Broker, which ends with the test.
func NewNetwork(t testing.TB, broker *Broker) *Network {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := NewNetworkTo(t, listener, broker.InProcessConn)
	n.broker = broker
	return n
}

// NewNetworkTo returns a Network from a listener to what dial connects to. It ends with the test.
func NewNetworkTo(
	t testing.TB, listener net.Listener, dial func() (net.Conn, error),
) *Network {
	n := &Network{Listener: listener, dial: dial}
	n.free = sync.NewCond(&n.mu)
	n.copying.Go(n.run)
	t.Cleanup(func() {
		_ = listener.Close()
		n.Hold(false)
		n.copying.Wait()
	})
	return n
}

func (n *Network) run() {
	for {
		client, err := n.Accept()
		if err != nil {
			return
		}
		server, err := n.dial()
		if err != nil {
			_ = client.Close()
			continue
		}
		n.copying.Go(func() { n.copy(server, client) })
		n.copying.Go(func() { n.copy(client, server) })
	}
}

func (n *Network) copy(to io.WriteCloser, from io.ReadCloser) {
	defer func() { _ = to.Close() }()
	defer func() { _ = from.Close() }()
	buffer := make([]byte, 4096)
	for {
		count, err := from.Read(buffer)
		n.mu.Lock()
		for n.held {
			n.free.Wait()
		}
		n.mu.Unlock()
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:count]); err != nil {
			return
		}
	}
}

// Connect connects to every account of the broker; the connections end with the test.
func (n *Network) Connect(t testing.TB, opts ...nats.Option) *streams.Conns {
	t.Helper()
	c := n.broker.Credentials()
	c.URL = "nats://" + n.Addr().String()
	return connect(t, c, opts...)
}

// Hold stops the traffic in both directions, or lets it through again.
func (n *Network) Hold(held bool) {
	n.mu.Lock()
	n.held = held
	n.mu.Unlock()
	n.free.Broadcast()
}
