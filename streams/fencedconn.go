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
	// fencedTimeout bounds one attempt to connect to one server. fencedFlush is how long Close
	// waits for the broker to receive everything.
	fencedTimeout = 2 * time.Second
	fencedFlush   = time.Second
	// With fencedPing and fencedPings a lost broker is detected within three seconds, before another
	// replica can have acquired a lease that is not renewed.
	fencedPing  = time.Second
	fencedPings = 2
	// fencedLook is how often LeaveIsolated looks where the connection leads, and fencedLeave the
	// least time between two connects that it causes.
	fencedLook  = 500 * time.Millisecond
	fencedLeave = 5 * time.Second
)

// errFenced reports that the connection may no longer send.
var errFenced = errors.New("the connection may no longer send")

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
	// socket is the current network connection; nil in process. After cut it is not replaced.
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
	f := &FencedConn{allowed: allowed, cancel: cancel}
	stop := context.AfterFunc(ctx, cancel) // while nats.Connect makes the first attempt
	defer stop()
	nc, err := c.open(
		"", ShardAccount(shard),
		nats.Name("hubcloud "+string(ShardAccount(shard))+" acks"),
		nats.Timeout(fencedTimeout),
		nats.PingInterval(fencedPing),
		nats.MaxPingsOutstanding(fencedPings),
		nats.ReconnectBufSize(-1),
		nats.FlusherTimeout(fencedTimeout), // a stuck network must not block senders
		nats.RetryOnFailedConnect(true),
		nats.SetCustomDialer(
			dialer(func(network, address string) (net.Conn, error) {
				return f.dial(dialing, network, address)
			}),
		),
	)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open a fenced connection to %s: %w", ShardAccount(shard), err)
	}
	f.nc = nc
	return f, nil
}

func (f *FencedConn) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: fencedTimeout}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// On close the system discards what it has not sent. Close flushes before.
		err = tcp.SetLinger(0)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut {
		err = errFenced
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	f.socket = conn
	return &fencedSocket{Conn: conn, allowed: f.allowed}, nil
}

// fencedSocket is a network connection that writes only while it is allowed.
type fencedSocket struct {
	net.Conn
	allowed func() bool
}

// Write implements net.Conn. It returns errFenced if it may not write.
func (s *fencedSocket) Write(p []byte) (int, error) {
	if !s.allowed() {
		return 0, errFenced
	}
	return s.Conn.Write(p)
}

// Publish sends a message at once, or returns an error if it was not sent.
func (f *FencedConn) Publish(subject string, data []byte) error {
	if !f.allowed() {
		return errFenced
	}
	return f.nc.Publish(subject, data)
}

// LeaveIsolated opens the connection again, to another server if there is one, whenever it leads to a
// server that is cut off from the majority, as isolated reports by the server's name: what is sent
// there reaches nobody. It returns when ctx ends.
func (f *FencedConn) LeaveIsolated(ctx context.Context, isolated func(server string) bool) {
	for pause := fencedLook; Sleep(ctx, pause); {
		pause = fencedLook
		if server := f.nc.ConnectedServerName(); server != "" && isolated(server) {
			_ = f.nc.ForceReconnect() // otherwise it is closed
			pause = fencedLeave
		}
	}
}

// Close ends the connection once the broker has everything that was sent, and like Cut if that
// takes more than a second.
func (f *FencedConn) Close() {
	if f.nc.IsConnected() && f.nc.FlushTimeout(fencedFlush) == nil {
		f.nc.Close()
	}
	f.Cut()
}

// Cut ends the connection at once and discards what the system has not sent yet. It may be called
// more than once, and after Close.
func (f *FencedConn) Cut() {
	f.mu.Lock()
	f.cut = true
	if f.socket != nil {
		_ = f.socket.Close() // it is closed to discard what it has not sent
	}
	f.mu.Unlock()
	f.cancel()
	f.nc.Close()
}
