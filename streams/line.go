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
	// lineTimeout bounds one attempt of a line to connect to one server, and lineFlush how long its
	// end waits for the broker to have everything.
	lineTimeout = 2 * time.Second
	lineFlush   = time.Second
	// linePing and linePings find a broker that is gone without a word within six seconds.
	linePing  = 2 * time.Second
	linePings = 2
)

// errNotAllowed reports that a line may send nothing any more.
var errNotAllowed = errors.New("the line may not send any more")

// Line is a connection to an account for messages that must not arrive late. What it cannot send at
// once it does not send at all: nothing is kept while it is not connected, nothing leaves this
// process once it is not allowed any more, and Cut takes back what the system has not sent yet,
// which would otherwise be repeated until the network is there again, however long that takes. Safe
// for concurrent use.
type Line struct {
	nc      *nats.Conn
	allowed func() bool
	cancel  context.CancelFunc

	mu sync.Mutex
	// socket is the connection as it is now; nil in process. cut reports that there will be no
	// other.
	socket net.Conn
	cut    bool
}

// OpenLine opens a line to a shard's account, whether the broker is there or not: it is connected
// to as soon as it is. allowed is asked right before anything is handed to the system. Whoever
// opens a line ends it with Close or Cut.
func (c *Conns) OpenLine(ctx context.Context, shard int, allowed func() bool) (*Line, error) {
	// The attempts end with the line rather than with ctx: what is to be said at the end may need
	// another one.
	dialing, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &Line{allowed: allowed, cancel: cancel}
	stop := context.AfterFunc(ctx, cancel) // while this waits for the first
	defer stop()
	nc, err := c.open(shard, []nats.Option{
		nats.Name("hubcloud " + string(ShardAccount(shard)) + " acks"),
		nats.Timeout(lineTimeout),
		nats.PingInterval(linePing),
		nats.MaxPingsOutstanding(linePings),
		nats.ReconnectBufSize(-1),
		nats.FlusherTimeout(lineTimeout), // a network that takes nothing must not hold up who sends
		nats.RetryOnFailedConnect(true),
		nats.SetCustomDialer(
			dialer(
				func(network, address string) (net.Conn, error) { return l.dial(dialing, network, address) },
			),
		),
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open a line to %s: %w", ShardAccount(shard), err)
	}
	l.nc = nc
	return l, nil
}

func (l *Line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: lineTimeout}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// Closed, it forgets what was not sent. What is to arrive is confirmed before.
		err = tcp.SetLinger(0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		err = errNotAllowed
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l.socket = conn
	return &guarded{Conn: conn, allowed: l.allowed}, nil
}

// guarded is a connection that writes while it is allowed.
type guarded struct {
	net.Conn
	allowed func() bool
}

// Write writes, unless it is not allowed.
func (g *guarded) Write(p []byte) (int, error) {
	if !g.allowed() {
		return 0, errNotAllowed
	}
	return g.Conn.Write(p)
}

// Publish sends a message now, or returns why it was not sent.
func (l *Line) Publish(subject string, data []byte) error {
	if !l.allowed() {
		return errNotAllowed
	}
	return l.nc.Publish(subject, data)
}

// Close ends the line once the broker has everything that was sent, and as Cut does when that takes
// more than a second.
func (l *Line) Close() {
	if l.nc.IsConnected() && l.nc.FlushTimeout(lineFlush) == nil {
		l.nc.Close()
	}
	l.Cut()
}

// Cut ends the line at once, and takes back what the system has not sent yet. It may be called more
// than once, and after Close.
func (l *Line) Cut() {
	l.mu.Lock()
	l.cut = true
	if l.socket != nil {
		_ = l.socket.Close() // what it did not send is what it is closed for
	}
	l.mu.Unlock()
	l.cancel()
	l.nc.Close()
}
