package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
)

// streamRequest returns the bytes of a request for a hub's event stream.
func (s *service) streamRequest(h *hub) string {
	return s.get("/hubs/" + h.ID + "/events/stream?positions=true")
}

// bareRequest returns the bytes of a request for an event stream of the bare web server.
func (s *service) bareRequest(web *bare, topic int) string {
	return fmt.Sprintf(
		"GET /stream/%d HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", topic,
		web.ready.HTTP, s.Tenant.Key,
	)
}

func (s *service) get(path string) string {
	return "GET /v1" + path + " HTTP/1.1\r\nHost: " + s.Service.HTTP + "\r\n" +
		"Authorization: Bearer " + s.Tenant.Key + "\r\n\r\n"
}

// pageClient reads pages over one connection.
type pageClient struct {
	conn   net.Conn
	reader *bufio.Reader
	body   []byte
}

func dialPages(address string) (*pageClient, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &pageClient{conn: conn, reader: bufio.NewReaderSize(conn, 64<<10)}, nil
}

var contentLength = []byte("Content-Length: ")

// read sends a request and reads the answer's body.
func (c *pageClient) read(request []byte) error {
	if _, err := c.conn.Write(request); err != nil {
		return err
	}
	length, first := -1, true
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 20")) {
			return fmt.Errorf("got %q to %q, want 200", line, request)
		}
		first = false
		if value, ok := bytes.CutPrefix(line, contentLength); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		}
		if len(line) == 2 {
			break
		}
	}
	if length < 0 {
		return errors.New("an answer without a length")
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err := io.ReadFull(c.reader, c.body)
	return err
}
