package httpapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"hubcloud/domain"
	"hubcloud/streams/shares"
	"hubcloud/streams/streamstest"
)

// unread is a connection with HTTP/2 whose client reads nothing of any response.
type unread struct {
	conn   *tls.Conn
	framer *http2.Framer
	header bytes.Buffer
	next   uint32
	// resets counts the requests that were reset.
	resets chan uint32
}

func (s *service) unread(t *testing.T) *unread {
	t.Helper()
	conn, err := tls.Dial("tcp", s.address(), clientTLS(protocolHTTP2))
	streamstest.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	u := &unread{
		conn: conn, framer: http2.NewFramer(conn, conn), next: 1, resets: make(chan uint32, 1000),
	}
	_, err = io.WriteString(conn, http2.ClientPreface)
	if err == nil {
		err = u.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize})
	}
	streamstest.Must(t, err)
	go func() {
		for {
			frame, err := u.framer.ReadFrame()
			if err != nil {
				return
			}
			if reset, ok := frame.(*http2.RSTStreamFrame); ok {
				u.resets <- reset.StreamID
			}
		}
	}()
	return u
}

// request sends a request. The connection may have been closed.
func (u *unread) request(path, key string) {
	u.header.Reset()
	encoder := hpack.NewEncoder(&u.header)
	for _, field := range [][2]string{
		{":method", "GET"}, {":scheme", "https"}, {":authority", "h"}, {":path", path},
		{"authorization", key},
	} {
		_ = encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // never fails
	}
	_ = u.framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: u.next, BlockFragment: u.header.Bytes(), EndStream: true, EndHeaders: true,
	})
	u.next += 2
}

// Connections with HTTP/2 whose clients read nothing of one response counted as busy, and kept
// everyone else out for as long as they liked.
func TestUnreadResponsesOverHTTP2GiveWay(t *testing.T) {
	t.Parallel()
	s := startTLS(t, true, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 10, 10 })
	for range 10 {
		s.unread(t).request("/v1/sites", s.bearer)
	}
	streamstest.Eventually(t, "all connections are busy", func() bool {
		open, idle, _ := s.tables()
		return open == 10 && idle == 0
	})
	began := time.Now()
	streamstest.Eventually(t, "a new connection is served", func() bool {
		request, err := http.NewRequest("GET", s.base+"/v1/sites", nil)
		streamstest.Must(t, err)
		request.Header.Set("Authorization", s.bearer)
		res, err := s.client.Do(request)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == 200
	})
	if took := time.Since(began); took > writeTimeout*3/4 {
		t.Errorf("new client waited for %s, want at most %s", took, writeTimeout*3/4)
	}
}

// Responses over HTTP/2 that their clients did not read took memory without a bound, as rejections
// also beyond the rate of requests.
func TestUnreadResponsesOverHTTP2AreBounded(t *testing.T) {
	t.Parallel()
	s := startTLS(t, true, nil)
	most := int(unreadResponses.PerID)
	var conns []*unread
	for opened := 0; opened < most+100; opened += 200 {
		u := s.unread(t)
		conns = append(conns, u)
		for range 200 {
			u.request("/healthz", "")
		}
	}
	streamstest.Eventually(t, "requests beyond the share of the address are reset", func() bool {
		resets := 0
		for _, u := range conns {
			resets += len(u.resets)
		}
		return resets >= 100
	})
	address := shares.Spender{ID: "127.0.0.1/32"}
	if held, _, _ := s.api.api.unread.Held(address); held > int64(most) {
		t.Errorf("%d responses are unread, want at most %d", held, most)
	}
	for _, u := range conns {
		u.conn.Close()
	}
	streamstest.Eventually(t, "closed connections release their share", func() bool {
		held, _, _ := s.api.api.unread.Held(address)
		return held == 0
	})
}

// A connection beyond the limit got plain HTTP on the port for HTTPS, which no client understands.
func TestRejectionsOverTLS(t *testing.T) {
	t.Parallel()
	s := startTLS(t, false, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 2, 5 })
	for i := range 2 {
		key, _ := s.addKey(orgTwo+string(rune('a'+i)), byte(2+i), domain.AllScopes()...)
		stream, err := tls.Dial("tcp", s.address(), clientTLS(protocolHTTP1))
		streamstest.Must(t, err)
		defer stream.Close()
		_, err = io.WriteString(
			stream, "GET /v1/events/stream HTTP/1.1\r\nHost: h\r\nAuthorization: "+key+"\r\n\r\n",
		)
		streamstest.Must(t, err)
		if res, err := http.ReadResponse(bufio.NewReader(stream), nil); err != nil ||
			res.StatusCode != 200 {
			t.Fatalf("stream %d: got %v, %v, want 200", i, res, err)
		}
	}
	for _, protocols := range [][]string{{protocolHTTP1}, {protocolHTTP2, protocolHTTP1}} {
		rejected, err := tls.Dial("tcp", s.address(), clientTLS(protocols...))
		streamstest.Must(t, err)
		defer rejected.Close()
		wantError(
			t, answerOn(t, bufio.NewReader(rejected)), 503, domain.CodeServiceUnavailable,
		)
	}
}
