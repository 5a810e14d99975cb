package httpapi

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/portal"
	"hubcloud/streams/streamstest"
)

// Requests that no HTTP client would send, as raw bytes over TCP.
func TestOnTheWire(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Portal = portal.New(portal.Config{}) })
	auth := "Host: h\r\nAuthorization: " + s.bearer + "\r\n"
	post := auth + "Content-Type: application/json\r\n"
	for name, tt := range map[string]struct {
		request string
		// one status for each answer, until the connection is closed or all requests are answered
		want []int
		has  string
	}{
		"absolute form": {
			"GET http://elsewhere/v1/sites HTTP/1.1\r\n" + auth + "\r\n", []int{200}, "",
		},
		"asterisk form": {
			"OPTIONS * HTTP/1.1\r\n" + auth + "\r\n", []int{404}, "not_found",
		},
		"pipelined, some rejected": {
			"GET /v1/no HTTP/1.1\r\n" + auth + "\r\nGET /v1/sites HTTP/1.1\r\nHost: h\r\n\r\nGET " +
				"/v1/sites HTTP/1.1\r\n" + auth + "\r\n",
			[]int{404, 401, 200}, "",
		},
		"keys in two headers": {
			"GET /v1/sites HTTP/1.1\r\n" + auth + "Authorization: " + s.bearer + "\r\n\r\n",
			[]int{401}, "given once",
		},
		"a body on a rejected request": {
			"GET /v1/sites HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello" +
				"GET /v1/sites HTTP/1.1\r\n" + auth + "\r\n",
			[]int{401, 200}, "",
		},
		"chunks": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Transfer-Encoding: chunked\r\n\r\n" +
				"5\r\n{\"nam\r\n7;x=y\r\ne\":\"x\"}\r\n0\r\nX-Trailer: 1\r\n\r\n" +
				"GET /v1/sites HTTP/1.1\r\n" + auth + "\r\n",
			[]int{201, 200}, "",
		},
		"a transfer coding": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Transfer-Encoding: gzip\r\n\r\nx", []int{400},
			"Transfer-Encoding: must be chunked",
		},
		"chunks that are none": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
			[]int{400}, "body",
		},
		"chunks without end": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Transfer-Encoding: chunked\r\n\r\n" +
				strings.Repeat("1000\r\n"+strings.Repeat("x", 0x1000)+"\r\n", 17),
			[]int{400}, "65536",
		},
		"a length and chunks": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Content-Length: 4\r\n" +
				"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			[]int{400}, "",
		},
		"two lengths": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Content-Length: 4\r\n" +
				"Content-Length: 5\r\n\r\nnull",
			[]int{400}, "",
		},
		"two content types": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Content-Type: application/json\r\n" +
				"Content-Length: 2\r\n\r\n{}",
			[]int{400}, "Content-Type",
		},
		"expecting a rejection": {
			"POST /v1/sites HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n" +
				"Content-Length: 9\r\n\r\n",
			[]int{401}, "",
		},
		"expecting what we do not": {
			"POST /v1/sites HTTP/1.1\r\n" + post + "Expect: a miracle\r\n" +
				"Content-Length: 2\r\n\r\n{}",
			[]int{417}, "Expect: must be 100-continue",
		},
		"no host": {
			"GET /v1/sites HTTP/1.1\r\n\r\n", []int{400}, "missing required Host header",
		},
		"a header without end": {
			"GET /v1/sites HTTP/1.1\r\n" + auth + "X: " + strings.Repeat("x", 64<<10), []int{431},
			"32768",
		},
		"a bad escape": {
			"GET /v1/sites/%zz HTTP/1.1\r\n" + auth + "\r\n", []int{400}, "",
		},
		"a line feed in the path": {
			"GET /v1/sites%0A HTTP/1.1\r\n" + auth + "\r\n", []int{404}, "not_found",
		},
		"HEAD of nothing": {
			"HEAD /v1/none HTTP/1.1\r\n" + auth + "\r\nGET /v1/sites HTTP/1.1\r\n" + auth + "\r\n",
			[]int{404, 200}, "",
		},
		"a Host that is none": {
			"GET /v1/sites HTTP/1.1\r\nHost: a b\r\n\r\n", []int{400}, "Host",
		},
		// An unparsed request has no path. Looking for one crashed the process.
		"a Host that is none, for a page": {
			"GET /portal/x HTTP/1.1\r\nHost: a b\r\n\r\n", []int{400}, "Host",
		},
		"a header that is none": {
			"GET /v1/sites HTTP/1.1\r\n" + auth + "X Y: z\r\n\r\n", []int{400},
			"invalid header name",
		},
		"no HTTP after some": {
			"GET /v1/sites HTTP/1.1\r\n" + auth + "\r\n\r\nnonsense\r\n\r\n", []int{200, 400},
			"well-formed",
		},
		"no HTTP at all": {
			"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", []int{400}, "well-formed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, answers := s.raw(t, tt.request)
			defer conn.Close()
			var got []int
			var all strings.Builder
			for _, method := range methodsOf(tt.request, len(tt.want)) {
				res, err := http.ReadResponse(answers, &http.Request{Method: method})
				if err != nil {
					t.Fatalf("after %v: got %v, want a response", got, err)
				}
				body, err := io.ReadAll(res.Body)
				if err != nil {
					t.Errorf("body: got %v, want all of it", err)
				}
				got = append(got, res.StatusCode)
				all.Write(body)
				answered := answer{&http.Response{
					StatusCode: res.StatusCode, Header: res.Header,
					Request: &http.Request{Method: method, URL: &url.URL{Path: "/v1"}},
				}, string(body)}
				checkHeaders(t, answered)
				if res.StatusCode >= 400 && method != "HEAD" {
					wantError(t, answered, res.StatusCode, codeOf(res.StatusCode))
				}
			}
			if !slices.Equal(got, tt.want) || !strings.Contains(all.String(), tt.has) {
				t.Errorf("%v %s, want %v with %q", got, all.String(), tt.want, tt.has)
			}
		})
	}
}

// codeOf returns the error code for a status of these requests.
func codeOf(status int) domain.Code {
	switch status {
	case http.StatusUnauthorized:
		return domain.CodeUnauthenticated
	case http.StatusNotFound:
		return domain.CodeNotFound
	default:
		return domain.CodeInvalidRequest
	}
}

// methodsOf returns the method of each of n requests: answers to HEAD have no body.
func methodsOf(requests string, n int) []string {
	methods := make([]string, n)
	if strings.HasPrefix(requests, "HEAD ") {
		methods[0] = "HEAD"
	}
	return methods
}

// raw sends bytes over a new connection.
func (s *service) raw(t *testing.T, text string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	streamstest.Must(t, err)
	streamstest.Must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	go func() { _, _ = io.WriteString(conn, text) }()
	return conn, bufio.NewReader(conn)
}

// A client that sends Expect gets 100 only if its body will be read.
func TestExpectContinue(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	conn, answers := s.raw(t, "POST /v1/sites HTTP/1.1\r\nHost: h\r\nAuthorization: "+s.bearer+
		"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 12\r\n\r\n")
	defer conn.Close()
	line, err := answers.ReadString('\n')
	if err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("got %q, %v, want 100 Continue", line, err)
	}
	_, _ = answers.ReadString('\n')
	_, _ = io.WriteString(conn, `{"name":"x"}`)
	if line, err = answers.ReadString('\n'); err != nil || line != "HTTP/1.1 201 Created\r\n" {
		t.Errorf("got %q, %v, want 201 Created", line, err)
	}
}

// Malformed HTTP gets 429 after a burst, like guessed keys, and is logged.
func TestUnparsedRequestsAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *Config) { c.Rate, c.Burst = 0.001, 3 })
	for i, want := range []int{400, 400, 431, 429, 429} {
		request := "nonsense\r\n\r\n"
		if want == 431 {
			request = "GET /" + strings.Repeat("x", 64<<10)
		}
		conn, answers := s.raw(t, request)
		res, err := http.ReadResponse(answers, nil)
		streamstest.Must(t, err)
		if res.StatusCode != want || !res.Close {
			t.Errorf(
				"request %d: got %d, close %t, want %d, true", i, res.StatusCode, res.Close, want,
			)
		}
		if (res.Header.Get("Retry-After") != "") != (want == 429) {
			t.Errorf(
				"request %d: got Retry-After %q, want one only with 429", i,
				res.Header.Get("Retry-After"),
			)
		}
		conn.Close()
	}
	streamstest.Eventually(
		t, "all rejections are logged",
		func() bool {
			return strings.Count(s.logged.String(), `"route":"(unreadable)","status":4`) == 5
		},
	)
	if a := s.do("GET", "/v1/sites", ""); a.StatusCode != 200 {
		t.Errorf("valid key: got %d, want 200", a.StatusCode)
	}
}

// A client that is still sending can read why it was rejected.
func TestErrorArrivesWhileClientSends(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	for range 20 {
		conn, answers := s.raw(
			t, "POST /v1/sites HTTP/9.9\r\nHost: h\r\n\r\n"+strings.Repeat("x", 200<<10),
		)
		res, err := http.ReadResponse(answers, nil)
		if err != nil || res.StatusCode != 400 {
			t.Fatalf("got %v, %v, want 400", res, err)
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Fatal(err)
		}
		if _, err := answers.ReadByte(); err != io.EOF {
			t.Fatalf("got %v, want the connection's clean end", err)
		}
		conn.Close()
	}
}

// A client that is slow to send the header is disconnected.
func TestSlowHeader(t *testing.T) {
	t.Parallel()
	inBubble(t, nil, func(_ *service, listener *pipeListener) {
		conn, err := listener.dial()
		streamstest.Must(t, err)
		defer conn.Close()
		began := time.Now()
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for _, b := range []byte("GET /v1/sites HTTP/1.1\r\nHost: h\r\n\r\n") {
				time.Sleep(time.Second) // on the clock of the bubble
				if _, err := conn.Write([]byte{b}); err != nil {
					return
				}
			}
		}()
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") {
			t.Errorf("got answer %q, %v, want 400", answer, err)
		}
		<-sent
		if took := time.Since(began); took > readHeaderTimeout+time.Second {
			t.Errorf("connection held for %s, want at most %s", took, readHeaderTimeout+time.Second)
		}
	})
}

// A connection without requests is closed: soon before the first request, and later after it.
func TestIdleConnection(t *testing.T) {
	t.Parallel()
	for request, most := range map[string]time.Duration{
		"": readHeaderTimeout, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n": idleTimeout,
	} {
		inBubble(t, nil, func(_ *service, listener *pipeListener) {
			conn, err := listener.dial()
			streamstest.Must(t, err)
			defer conn.Close()
			began := time.Now()
			go func() { _, _ = io.WriteString(conn, request) }()
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Error(err)
			}
			if took := time.Since(began); took != most {
				t.Errorf("%q: closed after %s, want %s", request, took, most)
			}
		})
	}
}
