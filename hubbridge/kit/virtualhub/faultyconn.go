package virtualhub

import (
	"context"
	"net"
	"sync"
)

// faultyNetwork opens TCP connections that can be cut. The zero faultyNetwork is ready for use.
type faultyNetwork struct {
	// open opens connections; nil means a net.Dialer's.
	open    func(ctx context.Context, network, address string) (net.Conn, error)
	mu      sync.Mutex
	current net.Conn // the last that was opened; nil before
}

// dial opens a connection, which becomes the current one.
func (n *faultyNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	open := n.open
	if open == nil {
		open = new(net.Dialer).DialContext
	}
	conn, err := open(ctx, network, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.current = conn
	return conn, nil
}

// cut closes the current connection without a TLS or MQTT goodbye.
func (n *faultyNetwork) cut() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.current != nil {
		_ = n.current.Close()
	}
}
