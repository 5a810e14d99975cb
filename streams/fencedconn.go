package streams

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// fencedTimeout bounds one attempt to connect to one server, and fencedFlush how long Close
	// waits until the broker has everything.
	fencedTimeout = 2 * time.Second
	fencedFlush   = time.Second
	// fencedPing and fencedPings detect a broker that is gone within six seconds.
	fencedPing  = 2 * time.Second
	fencedPings = 2
)

// errFenced reports that the connection may send nothing any more.
var errFenced = errors.New("the connection may not send any more")

// FencedConn is a connection to an account for messages that must not arrive late, such as acks,
// which only the holder of a shard's lease may send. What it cannot send at once it does not send
// at all: nothing is buffered while it is disconnected, nothing leaves the process once allowed
// returns false, and Cut discards what the operating system has not sent yet and would otherwise
// send again until the network is back. Safe for concurrent use.
type FencedConn struct {
	nc      *nats.Conn
	allowed func() bool
	cancel  context.CancelFunc

	mu sync.Mutex
	// socket is the present network connection; nil in process. cut reports that there will be no
	// other one.
	socket net.Conn
	cut    bool
}

// OpenFencedConn opens a connection to a shard's account. It returns without waiting for a broker
// that is away, and connects as soon as there is one. allowed is called right before anything is
// handed to the operating system. The caller must Close or Cut the connection.
func (c *Conns) OpenFencedConn(
	ctx context.Context, shard int, allowed func() bool,
) (*FencedConn, error) {
	// The attempts to connect end with the connection rather than with ctx: its last messages may
	// need another attempt.
	dialing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &FencedConn{allowed: allowed, cancel: cancel}
	stop := context.AfterFunc(ctx, cancel) // while nats.Connect makes the first attempt
	defer stop()
	nc, err := c.open(shard, []nats.Option{
		nats.Name("hubcloud " + string(ShardAccount(shard)) + " acks"),
		nats.Timeout(fencedTimeout),
		nats.PingInterval(fencedPing),
		nats.MaxPingsOutstanding(fencedPings),
		nats.ReconnectBufSize(-1),
		nats.FlusherTimeout(fencedTimeout), // a stuck network must not block senders
		nats.RetryOnFailedConnect(true),
		nats.SetCustomDialer(
			dialer(
				func(network, address string) (net.Conn, error) { return l.dial(dialing, network, address) },
			),
		),
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open a fenced connection to %s: %w", ShardAccount(shard), err)
	}
	l.nc = nc
	return l, nil
}

func (l *FencedConn) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: fencedTimeout}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// On close the system discards what it has not sent. Close flushes before.
		err = tcp.SetLinger(0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		err = errFenced
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l.socket = conn
	return &fencedSocket{Conn: conn, allowed: l.allowed}, nil
}

// fencedSocket is a network connection that writes only while it is allowed.
type fencedSocket struct {
	net.Conn
	allowed func() bool
}

// Write implements net.Conn. It returns errFenced if it may not write.
func (g *fencedSocket) Write(p []byte) (int, error) {
	if !g.allowed() {
		return 0, errFenced
	}
	return g.Conn.Write(p)
}

// Publish sends a message at once, or returns an error if it was not sent.
func (l *FencedConn) Publish(subject string, data []byte) error {
	if !l.allowed() {
		return errFenced
	}
	return l.nc.Publish(subject, data)
}

// Close ends the connection once the broker has everything that was sent, and like Cut if that
// takes more than a second.
func (l *FencedConn) Close() {
	if l.nc.IsConnected() && l.nc.FlushTimeout(fencedFlush) == nil {
		l.nc.Close()
	}
	l.Cut()
}

// Cut ends the connection at once and discards what the system has not sent yet. It may be called
// more than once, and after Close.
func (l *FencedConn) Cut() {
	l.mu.Lock()
	l.cut = true
	if l.socket != nil {
		_ = l.socket.Close() // it is closed to discard what it has not sent
	}
	l.mu.Unlock()
	l.cancel()
	l.nc.Close()
}
