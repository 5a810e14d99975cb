package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
)

// opened is a connection to the service, and what it answers there.
func (s *service) opened(t *testing.T, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, answers := s.raw(t, text)
	t.Cleanup(func() { conn.Close() })
	return conn, answers
}

// answerOn reads one answer of a connection.
func answerOn(t *testing.T, answers *bufio.Reader) answer {
	t.Helper()
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	res.Request = &http.Request{Method: "GET", URL: &url.URL{Path: "/v1/sites"}}
	return answer{res, string(body)}
}

func (s *service) tables() (open, idle, addresses int) {
	cs := s.api.api.connections
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open), cs.idle.Len(), len(cs.from)
}

// TestIdleConnectionsGiveWay: nothing bounded connections, so that idle ones used up the open files, and new clients got no answer. Now the connection
// that has been idle for longest is closed for a new one: one that was only opened, one whose header does not come to its end, or one whose
// requests are all answered. Those with a request under way stay.
func TestIdleConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	request := "GET /v1/sites HTTP/1.1\r\nHost: h\r\nAuthorization: "
	for name, change := range map[string]func(*Config){
		"from one address": func(c *Config) { c.Connections, c.ConnectionsPerAddress = 1000, 10 },
		"in all":           func(c *Config) { c.Connections, c.ConnectionsPerAddress = 10, 1000 },
		"from a proxy": func(c *Config) {
			c.Connections, c.ConnectionsPerAddress, c.TrustedProxies = 10, 1, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, change)
			_, stream := s.opened(t, "GET "+streamPath+" HTTP/1.1\r\nHost: h\r\nAuthorization: "+s.bearer+"\r\n\r\n")
			if res, err := http.ReadResponse(stream, nil); err != nil || res.StatusCode != 200 {
				t.Fatalf("%v %v", res, err)
			}
			used, usedAnswers := s.opened(t, request+s.bearer+"\r\n\r\n")
			answerOn(t, usedAnswers)
			var idle []*bufio.Reader
			for i := range 200 {
				_, answers := s.opened(t, []string{"", "GET /v1/si", "GET /v1/sites HTTP/1.1\r\nHost: h\r\n"}[i%3])
				idle = append(idle, answers)
			}
			for range 3 { // each on a connection of its own
				_, answers := s.opened(t, request+s.bearer+"\r\n\r\n")
				if a := answerOn(t, answers); a.StatusCode != 200 {
					t.Errorf("a new client gets %d %s", a.StatusCode, a.body)
				}
			}
			eventually(t, func() bool { open, waiting, _ := s.tables(); return open == 10 && waiting == 9 })
			for i, answers := range idle[:180] {
				if b, err := answers.ReadByte(); err == nil {
					t.Fatalf("idle connection %d is answered %q", i, b)
				}
			}
			if _, err := usedAnswers.ReadByte(); err == nil {
				t.Error("the connection that was used once is still open")
			}
			used.Close()
			s.emit(1, 0)
			for {
				line, err := stream.ReadString('\n')
				if err != nil {
					t.Fatalf("the stream: %v", err)
				}
				if strings.HasPrefix(line, "data: ") {
					break
				}
			}
		})
	}
}

// TestBusyConnectionsStay: when every connection is busy a new one is refused in words, and let in once there is a place.
func TestBusyConnectionsStay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Config)
		status int
		code   domain.Code
	}{
		"from one address": {func(c *Config) { c.Connections, c.ConnectionsPerAddress = 20, 5 }, 429, domain.CodeRateLimited},
		"in all":           {func(c *Config) { c.Connections, c.ConnectionsPerAddress = 5, 20 }, 503, domain.CodeServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, tt.change)
			second, _ := s.addKey(orgOne, 2, domain.AllScopes()...)
			third, _ := s.addKey(orgOne, 3, domain.AllScopes()...)
			var streams []net.Conn
			for i := range 5 {
				conn, answers := s.opened(t, "GET "+streamPath+" HTTP/1.1\r\nHost: h\r\nAuthorization: "+[]string{s.bearer, second, third}[i%3]+"\r\n\r\n")
				if res, err := http.ReadResponse(answers, nil); err != nil || res.StatusCode != 200 {
					t.Fatalf("stream %d: %v %v", i, res, err)
				}
				streams = append(streams, conn)
			}
			text := "GET /v1/sites HTTP/1.1\r\nHost: h\r\nAuthorization: " + s.bearer + "\r\n\r\n"
			_, answers := s.opened(t, text)
			a := answerOn(t, answers)
			refused(t, a, tt.status, tt.code)
			checkHeaders(t, a)
			if a.Header.Get("Retry-After") == "" || !a.Close {
				t.Errorf("header %v", a.Header)
			}
			if open, _, _ := s.tables(); open != 5 {
				t.Errorf("%d connections are open", open)
			}
			streams[0].Close()
			eventually(t, func() bool {
				_, answers := s.opened(t, text)
				return answerOn(t, answers).StatusCode == 200
			})
		})
	}
}

// TestStreamsLeaveConnections: one key's streams never take all connections.
func TestStreamsLeaveConnections(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 10, 10 })
	for i := range 6 {
		_, answers := s.opened(t, "GET "+streamPath+" HTTP/1.1\r\nHost: h\r\nAuthorization: "+s.bearer+"\r\n\r\n")
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != map[bool]int{true: 200, false: 429}[i < 5] {
			t.Fatalf("stream %d: %v %v", i, res, err)
		}
	}
}

// TestConnectionsAreForgotten: what is closed, by whomever, takes no place any more.
func TestConnectionsAreForgotten(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 8, 4 })
	for i := range 100 {
		conn, _ := s.raw(t, []string{"", "nonsense\r\n\r\n", "GET /v1/sites HTTP/1.1\r\nHost: h\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"}[i%4])
		if i%3 == 0 {
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, _ = conn.Read(make([]byte, 1))
		}
		conn.Close()
	}
	eventually(t, func() bool { open, idle, addresses := s.tables(); return open == 0 && idle == 0 && addresses == 0 })
}
