package bench

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// eventStream is the decoder of one event stream.
type eventStream struct {
	fd     int
	http   bool // the answer's header is read
	plain  bool // of a server of plain NATS: lines, without HTTP
	head   []byte
	chunk  int // remaining bytes of the current chunk; -1 before its size is known
	line   []byte
	seen   bool
	events int
	// cloud is set if the current block is an event of the cloud, such as hub.disconnected. Those
	// are not counted: on a busy machine a hub may lose its connection.
	cloud bool
}

// decode decodes received bytes, a part of a chunked HTTP/1.1 answer.
func (s *eventStream) decode(wire []byte, r *readers) error {
	if len(s.head) == 0 && bytes.HasPrefix(wire, []byte("INFO ")) {
		s.plain = true
	}
	if s.plain {
		s.text(wire, r)
		return nil
	}
	if !s.http {
		s.head = append(s.head, wire...)
		head, rest, whole := bytes.Cut(s.head, []byte("\r\n\r\n"))
		if !whole {
			return nil
		}
		if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) ||
			!bytes.Contains(head, []byte("chunked")) {
			return fmt.Errorf("got answer %q, want an event stream", s.head)
		}
		s.http, s.head, wire = true, nil, rest
	}
	for len(wire) > 0 {
		if s.chunk < 0 {
			size, rest, whole := bytes.Cut(wire, []byte("\r\n"))
			if len(s.head)+len(size) == 0 && whole { // the line end of the previous chunk
				wire = rest
				continue
			}
			s.head = append(s.head, size...)
			if !whole {
				return nil
			}
			n, err := strconv.ParseUint(string(bytes.TrimSpace(s.head)), 16, 31)
			if err != nil || n == 0 {
				return fmt.Errorf("malformed chunk %q", s.head)
			}
			s.chunk, s.head, wire = int(n), s.head[:0], rest
			continue
		}
		n := min(s.chunk, len(wire))
		s.text(wire[:n], r)
		wire = wire[n:]
		if s.chunk -= n; s.chunk == 0 {
			s.chunk = -1
		}
	}
	return nil
}

// text splits the stream's bytes into lines.
func (s *eventStream) text(content []byte, r *readers) {
	for {
		end := bytes.IndexByte(content, '\n')
		if end < 0 {
			s.line = append(s.line, content...)
			return
		}
		line := content[:end]
		if len(s.line) > 0 {
			s.line = append(s.line, line...)
			line = s.line
		}
		s.handleLine(line, r)
		s.line = s.line[:0]
		content = content[end+1:]
	}
}

// handleLine handles one line of the stream.
func (s *eventStream) handleLine(line []byte, r *readers) {
	if s.plain {
		s.countStamps(line, r)
		return
	}
	if typ, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
		s.cloud = bytes.HasPrefix(typ, []byte("hub."))
		return
	}
	if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
		if s.cloud {
			return
		}
		at, ok := stampOf(data)
		s.count(at, ok, r)
		return
	}
	if bytes.HasPrefix(line, []byte("id: ")) && !s.seen {
		s.seen = true
		r.greeted++
	}
}

// count counts an event, and its latency if it is stamped.
func (s *eventStream) count(sent time.Time, stamped bool, r *readers) {
	s.events++
	r.events++
	if stamped {
		r.latencies = append(r.latencies, float64(time.Since(sent)))
	}
	if s.events == r.target {
		if r.done++; r.done == r.count {
			close(r.finished)
		}
	}
}

// countStamps counts the events in a line of any server's stream: some write several into one
// message, or an event's JSON as a string.
func (s *eventStream) countStamps(line []byte, r *readers) {
	// A server of plain NATS says INFO before it reads the subscription, and PONG once it has it.
	if !s.seen && bytes.HasPrefix(line, []byte("PONG")) {
		s.seen = true
		r.greeted++
	}
	for {
		_, rest, found := bytes.Cut(line, []byte("value"))
		if !found {
			return
		}
		line = bytes.TrimLeft(rest, `\":`)
		if len(line) < stampWidth {
			return
		}
		us, err := strconv.ParseInt(string(line[:stampWidth]), 10, 64)
		if err == nil {
			s.count(time.UnixMicro(us), true, r)
		}
	}
}
