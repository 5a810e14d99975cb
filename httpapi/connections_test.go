package httpapi

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams/streamstest"
)

// opened returns a new connection to the service and a reader of its answers.
func (s *service) opened(t *testing.T, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, answers := s.raw(t, text)
	t.Cleanup(func() { conn.Close() })
	return conn, answers
}

// answerOn reads one answer from a connection.
func answerOn(t *testing.T, answers *bufio.Reader) answer {
	t.Helper()
	res, err := http.ReadResponse(answers, nil)
	streamstest.Must(t, err)
	body, err := io.ReadAll(res.Body)
	streamstest.Must(t, err)
	res.Request = &http.Request{Method: "GET", URL: &url.URL{Path: "/v1/sites"}}
	return answer{res, string(body)}
}

// openedStream returns a stream on a new connection.
func (s *service) openedStream(t *testing.T) *bufio.Reader {
	t.Helper()
	_, stream := s.opened(
		t, "GET "+streamPath+" HTTP/1.1\r\nHost: h\r\nAuthorization: "+s.bearer+"\r\n\r\n",
	)
	if res, err := http.ReadResponse(stream, nil); err != nil || res.StatusCode != 200 {
		t.Fatalf("stream: got %v, %v, want 200", res, err)
	}
	return stream
}

// goesOn checks that a stream gets a new event.
func (s *service) goesOn(t *testing.T, stream *bufio.Reader) {
	t.Helper()
	s.emit(1, 0)
	for line := ""; !strings.HasPrefix(line, "data: "); {
		var err error
		if line, err = stream.ReadString('\n'); err != nil {
			t.Fatalf("stream: got %v, want an event", err)
		}
	}
}

func (s *service) tables() (open, idle, addresses int) {
	cs := s.api.api.connections
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open), cs.idle.Len(), len(cs.byAddress)
}

// Idle connections must not use up the file descriptors, so that new clients get no answer: a new
// connection replaces the one that has been idle longest: without a request, with an incomplete
// header, or with all requests answered. Connections with a request under way stay.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	request := "GET /v1/sites HTTP/1.1\r\nHost: h\r\nAuthorization: "
	for name, change := range map[string]func(*Config){
		"from one address": func(c *Config) { c.Connections, c.ConnectionsPerAddress = 1000, 10 },
		"in all":           func(c *Config) { c.Connections, c.ConnectionsPerAddress = 10, 1000 },
		"from a proxy": func(c *Config) {
			c.Connections, c.ConnectionsPerAddress, c.TrustedProxies = 10, 1, []netip.Prefix{
				netip.MustParsePrefix("127.0.0.0/8"),
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, change)
			stream := s.openedStream(t)
			used, usedAnswers := s.opened(t, request+s.bearer+"\r\n\r\n")
			answerOn(t, usedAnswers)
			var idle []*bufio.Reader
			for i := range 200 {
				_, answers := s.opened(
					t, []string{"", "GET /v1/si", "GET /v1/sites HTTP/1.1\r\nHost: h\r\n"}[i%3],
				)
				idle = append(idle, answers)
			}
			for range 3 { // each on a connection of its own
				_, answers := s.opened(t, request+s.bearer+"\r\n\r\n")
				if a := answerOn(t, answers); a.StatusCode != 200 {
					t.Errorf("new client: got %d %s, want 200", a.StatusCode, a.body)
				}
			}
			streamstest.Eventually(
				t, "10 connections are open, 9 of them idle",
				func() bool { open, waiting, _ := s.tables(); return open == 10 && waiting == 9 },
			)
			for i, answers := range idle[:180] {
				if b, err := answers.ReadByte(); err == nil {
					t.Fatalf("idle connection %d: got an answer %q, want it closed", i, b)
				}
			}
			if _, err := usedAnswers.ReadByte(); err == nil {
				t.Error("got an open connection that was used once, want it closed")
			}
			used.Close()
			s.goesOn(t, stream)
		})
	}
}

// When every connection is busy, a new one is rejected with an error, and one is accepted once
// there is a slot.
func TestBusyConnectionsStay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Config)
		status int
		code   domain.Code
	}{
		"from one address": {
			func(c *Config) { c.Connections, c.ConnectionsPerAddress = 20, 5 }, 429,
			domain.CodeRateLimited,
		},
		"in all": {
			func(c *Config) { c.Connections, c.ConnectionsPerAddress = 5, 20 }, 503,
			domain.CodeServiceUnavailable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tt.change)
			var streams []net.Conn
			for i := range 5 {
				// One organization does not get them all.
				key, _ := s.addKey(fmt.Sprint(orgTwo, i), byte(2+i), domain.AllScopes()...)
				conn, answers := s.opened(
					t, "GET /v1/events/stream HTTP/1.1\r\nHost: h\r\nAuthorization: "+key+"\r\n\r\n",
				)
				if res, err := http.ReadResponse(answers, nil); err != nil ||
					res.StatusCode != 200 {
					t.Fatalf("stream %d: got %v, %v, want 200", i, res, err)
				}
				streams = append(streams, conn)
			}
			text := "GET /v1/sites HTTP/1.1\r\nHost: h\r\nAuthorization: " + s.bearer + "\r\n\r\n"
			_, answers := s.opened(t, text)
			a := answerOn(t, answers)
			wantError(t, a, tt.status, tt.code)
			checkHeaders(t, a)
			if a.Header.Get("Retry-After") == "" || !a.Close {
				t.Errorf("got header %v, want Retry-After and Connection: close", a.Header)
			}
			if open, _, _ := s.tables(); open != 5 {
				t.Errorf("got %d open connections, want 5", open)
			}
			streams[0].Close()
			streamstest.Eventually(t, "a new connection is served", func() bool {
				_, answers := s.opened(t, text)
				return answerOn(t, answers).StatusCode == 200
			})
		})
	}
}

// from opens a connection from a loopback address and sends text.
func (s *service) from(t *testing.T, address, text string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := dialer.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		t.Skipf("no connection from %s: %v", address, err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	return conn
}

// Half bodies from many addresses must not keep everyone else out for as long as a body may take:
// connections that wait for the rest of one are replaced, longest waiting first, whether the
// handler or the server reads the body. A stream stays.
func TestUnfinishedBodiesGiveWay(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]struct {
		request string
		key     bool
	}{
		"with a key":              {request: "POST /v1/sites", key: true},
		"without a key":           {request: "POST /v1/sites"},
		"a hub's certificate":     {request: "POST /link/v1/certificates"},
		"on a route with no body": {request: "GET /v1/sites", key: true},
		"on no route":             {request: "POST /nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 40, 20 })
			header := "\r\nHost: h\r\nContent-Type: application/json\r\n"
			key := "Authorization: " + s.bearer + "\r\n"
			stream := s.openedStream(t)
			text := attack.request + " HTTP/1.1" + header
			if attack.key {
				text += key
			}
			for i := range 200 {
				s.from(t, fmt.Sprintf("127.0.1.%d", i+1), text+"Content-Length: 100\r\n\r\n{")
			}
			// All slots are taken, and the open connections wait for their clients.
			streamstest.Eventually(
				t, "40 connections are open, 39 of them idle",
				func() bool { open, waiting, _ := s.tables(); return open == 40 && waiting == 39 },
			)
			fastest := time.Hour
			for range 3 {
				began := time.Now()
				_, answers := s.opened(t, "GET /v1/sites HTTP/1.1"+header+key+"\r\n")
				if a := answerOn(t, answers); a.StatusCode != 200 {
					t.Errorf("new client: got %d %s, want 200", a.StatusCode, a.body)
				}
				fastest = min(fastest, time.Since(began))
			}
			if fastest > bodyTimeout/2 {
				t.Errorf("new clients waited for %s, want at most %s", fastest, bodyTimeout/2)
			}
			s.goesOn(t, stream)
		})
	}
}

// Connections whose clients do not read the answer must not keep everyone else out for as long as a
// write may take.
func TestUnreadAnswersGiveWay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"from one address": func(c *Config) { c.Connections, c.ConnectionsPerAddress = 1000, 10 },
		"in all":           func(c *Config) { c.Connections, c.ConnectionsPerAddress = 10, 1000 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, change)
			s.emit(500, 16<<10)
			for range 10 {
				s.opened(t, s.pageRequest("?limit=500"))
			}
			began := time.Now()
			streamstest.Eventually(t, "a new connection is served", func() bool {
				_, answers := s.opened(
					t, "GET /v1/sites HTTP/1.1\r\nHost: h\r\nAuthorization: "+s.bearer+"\r\n\r\n",
				)
				res, err := http.ReadResponse(answers, nil)
				return err == nil && res.StatusCode == 200
			})
			if took := time.Since(began); took > writeTimeout*3/4 {
				t.Errorf("new client waited for %s, want at most %s", took, writeTimeout*3/4)
			}
		})
	}
}

// One key's streams never take all connections.
func TestStreamsLeaveConnections(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 10, 10 })
	for i := range 6 {
		_, answers := s.opened(
			t, "GET "+streamPath+" HTTP/1.1\r\nHost: h\r\nAuthorization: "+s.bearer+"\r\n\r\n",
		)
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != map[bool]int{true: 200, false: 429}[i < 5] {
			t.Fatalf("stream %d: got %v, %v, want 200 for the first 5 and 429 then", i, res, err)
		}
	}
}

// A closed connection frees its slot, whoever closed it.
func TestConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 8, 4 })
	for i := range 100 {
		conn, _ := s.raw(
			t,
			[]string{
				"", "nonsense\r\n\r\n", "GET /v1/sites HTTP/1.1\r\nHost: h\r\n\r\n",
				"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
			}[i%4],
		)
		if i%3 == 0 {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, _ = conn.Read(make([]byte, 1))
		}
		conn.Close()
	}
	streamstest.Eventually(
		t, "no connection is left",
		func() bool {
			open, idle, addresses := s.tables()
			return open == 0 && idle == 0 && addresses == 0
		},
	)
}
