package sim

import (
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"
)

// conn is one end of a connection.
type conn struct {
	in, out       *pipe
	local, remote *net.TCPAddr
}

// pipe is one direction of a connection. The network's mutex guards it.
type pipe struct {
	network *Network
	link    link
	reverse *pipe
	changed *sync.Cond

	under    []segment // sent, not arrived
	size     int       // bytes of under
	sent     time.Time // the last time of arrival that was given
	blocked  bool      // the first segment of under waits for the end of a cut
	received []byte
	err      error // what a read returns after received
	deadline time.Time
	wake     *time.Timer
	closed   bool // the receiving end is closed
	// abandoned means that the sender's process has ended; finished that the sender has closed.
	abandoned, finished bool
}

// segment is what a write sends, or the end of the stream if err is set.
type segment struct {
	data []byte
	err  error
	at   time.Time
}

func newPipe(n *Network, l link) *pipe {
	return &pipe{network: n, link: l, changed: sync.NewCond(&n.mu)}
}

// send sends a segment.
func (p *pipe) send(s segment) {
	if p.abandoned || p.finished {
		return
	}
	s.at = p.network.arrival(p.link, p.sent)
	p.sent = s.at
	p.under, p.size = append(p.under, s), p.size+len(s.data)
	if len(p.under) == 1 {
		p.schedule()
	}
}

// schedule lets the first segment arrive at its time.
func (p *pipe) schedule() {
	time.AfterFunc(time.Until(p.under[0].at), func() {
		p.network.mu.Lock()
		defer p.network.mu.Unlock()
		p.arrive()
	})
}

// arrive receives the first segment, unless the link is cut.
func (p *pipe) arrive() {
	if len(p.under) == 0 {
		return
	}
	if p.blocked = p.network.cuts[p.link]; p.blocked {
		return
	}
	s := p.under[0]
	delete(p.network.taken, s.at.UnixNano())
	p.under, p.size = p.under[1:], p.size-len(s.data)
	switch {
	case s.err != nil && p.err == nil:
		p.end(s.err)
	case p.closed:
		p.reverse.send(segment{err: reset("read")})
	case p.err == nil:
		p.received = append(p.received, s.data...)
		p.changed.Broadcast()
	}
	if len(p.under) > 0 {
		p.schedule()
	}
}

// resend sends what a cut has lost again.
func (p *pipe) resend() {
	if !p.blocked {
		return
	}
	p.blocked = false
	n := p.network
	again := time.Now().Add(time.Duration(n.random.Int63n(int64(retransmission))))
	for i := range p.under {
		delete(n.taken, p.under[i].at.UnixNano())
		again = n.arrival(p.link, again)
		p.under[i].at = again
	}
	p.sent = again
	p.schedule()
}

// end ends the stream for its reader, and forgets the pipe when the other direction is over too.
func (p *pipe) end(err error) {
	if p.err == nil {
		p.err = err
		p.changed.Broadcast()
	}
	if p.reverse.err != nil {
		n := p.network
		n.pipes = slices.DeleteFunc(n.pipes, func(q *pipe) bool { return q == p || q == p.reverse })
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	p := c.in
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	for {
		p.network.awaitRunning(p.link.to)
		switch {
		case p.closed:
			return 0, net.ErrClosed
		case len(p.received) > 0:
			read := copy(b, p.received)
			p.received = p.received[read:]
			return read, nil
		case p.err != nil:
			return 0, p.err
		case !p.deadline.IsZero() && !time.Now().Before(p.deadline):
			return 0, os.ErrDeadlineExceeded
		}
		p.changed.Wait()
	}
}

// Write implements net.Conn. With a full buffer it fails like a write whose deadline has passed. It
// waits only while the process is stopped.
func (c *conn) Write(b []byte) (int, error) {
	p := c.out
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	p.network.awaitRunning(p.link.from)
	switch {
	case c.in.closed || p.abandoned:
		return 0, net.ErrClosed
	case c.in.err != nil && c.in.err != io.EOF:
		return 0, reset("write")
	case p.size > sendBuffer:
		return 0, os.ErrDeadlineExceeded
	}
	p.send(segment{data: slices.Clone(b)})
	return len(b), nil
}

// Close implements net.Conn.
func (c *conn) Close() error {
	n := c.in.network
	n.mu.Lock()
	defer n.mu.Unlock()
	if c.in.closed {
		return net.ErrClosed
	}
	c.in.closed = true
	c.out.send(segment{err: io.EOF})
	c.out.finished = true
	c.in.end(net.ErrClosed)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	p := c.in
	p.network.mu.Lock()
	defer p.network.mu.Unlock()
	if p.wake != nil {
		p.wake.Stop()
	}
	p.deadline, p.wake = t, nil
	if !t.IsZero() {
		p.wake = time.AfterFunc(time.Until(t), p.changed.Broadcast)
	}
	p.changed.Broadcast()
	return nil
}

// SetWriteDeadline implements net.Conn. Writes do not wait.
func (*conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }
