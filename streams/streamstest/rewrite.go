package streamstest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
)

// Rewriter is a proxy between clients and a Broker that can change the broker's messages, so that a
// test can choose when its client gets an answer that otherwise only a cluster sends.
type Rewriter struct {
	broker       *Broker
	change       atomic.Pointer[func(payload []byte) []byte]
	changeHeader atomic.Pointer[func(header []byte) []byte]
}

// NewRewriter returns a Rewriter that changes nothing yet. Clients connect to it with Connect(t,
// nats.InProcessServer(rewriter)).
func NewRewriter(b *Broker) *Rewriter { return &Rewriter{broker: b} }

// Change replaces every payload from now on by the result of change. A message whose result is nil
// is lost. The broker's INFO counts as a payload. A nil change ends the replacement. change may be
// called for several connections at the same time.
func (r *Rewriter) Change(change func(payload []byte) []byte) {
	r.change.Store(&change)
}

// ChangeHeader replaces the header of every message that has one, from now on, by the result of
// change: the lines from "NATS/1.0" to the empty line. A nil change ends the replacement. change
// may be called for several connections at the same time.
func (r *Rewriter) ChangeHeader(change func(header []byte) []byte) {
	r.changeHeader.Store(&change)
}

// InProcessConn implements nats.InProcessConnProvider.
func (r *Rewriter) InProcessConn() (net.Conn, error) {
	conn, err := r.broker.InProcessConn()
	if err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	go func() { write.CloseWithError(r.copy(write, bufio.NewReaderSize(conn, 64<<10))) }()
	return &rewritten{Conn: conn, read: read}, nil
}

// rewritten is a connection to the broker whose reads return the rewritten messages.
type rewritten struct {
	net.Conn
	read *io.PipeReader
}

func (c *rewritten) Read(p []byte) (int, error) { return c.read.Read(p) }

func (c *rewritten) Close() error {
	_ = c.read.Close()
	return c.Conn.Close()
}

// copy copies the broker's protocol line by line, with rewritten payloads.
func (r *Rewriter) copy(to io.Writer, from *bufio.Reader) error {
	for {
		line, err := from.ReadBytes('\n')
		if err != nil {
			return err
		}
		out := line
		fields := bytes.Fields(line)
		switch {
		case len(fields) == 0:
		case string(fields[0]) == "INFO":
			out = fmt.Appendf(nil, "INFO %s\r\n", r.apply(bytes.TrimSpace(line[len("INFO "):])))
		case string(fields[0]) == "MSG", string(fields[0]) == "HMSG":
			if out, err = r.message(fields, from); err != nil {
				return err
			}
		}
		if _, err := to.Write(out); err != nil {
			return err
		}
	}
}

// message reads the rest of a message and returns the rewritten message, nil for a lost one.
func (r *Rewriter) message(fields [][]byte, from *bufio.Reader) ([]byte, error) {
	size, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil {
		return nil, err
	}
	whole := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(from, whole); err != nil {
		return nil, err
	}
	var header []byte
	if string(fields[0]) == "HMSG" {
		n, err := strconv.Atoi(string(fields[len(fields)-2]))
		if err != nil {
			return nil, err
		}
		header = whole[:n]
	}
	payload := r.apply(whole[len(header):size])
	if payload == nil {
		return nil, nil
	}
	if header != nil {
		if change := r.changeHeader.Load(); change != nil && *change != nil {
			header = (*change)(header)
		}
		fields[len(fields)-2] = strconv.AppendInt(nil, int64(len(header)), 10)
	}
	fields[len(fields)-1] = strconv.AppendInt(nil, int64(len(header)+len(payload)), 10)
	out := append(bytes.Join(fields, []byte(" ")), "\r\n"...)
	out = append(append(out, header...), payload...)
	return append(out, "\r\n"...), nil
}

func (r *Rewriter) apply(payload []byte) []byte {
	if change := r.change.Load(); change != nil && *change != nil {
		return (*change)(payload)
	}
	return append([]byte{}, payload...) // not nil
}
