package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/domain"
)

// service is an API on a server of its own, and a client of it.
type service struct {
	*world
	t      *testing.T
	base   string
	client *http.Client
	bearer string // of a key of orgOne with every scope
	revoke func()
	drain  func()
	server *http.Server
	api    API
	logged *lockedBuffer
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// newAPI returns an API that discards its log unless cfg has a logger.
func newAPI(t testing.TB, cfg Config) API {
	t.Helper()
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	api, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// start serves on a loopback port.
func start(t *testing.T, change func(*Config)) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, listener, &http.Transport{}, "http://"+listener.Addr().String(), change)
}

// startInBubble serves on in-memory pipes, which testing/synctest can wait for.
func startInBubble(
	t *testing.T, change func(*Config), protocols *http.Protocols,
) (*service, *pipeListener) {
	t.Helper()
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{
		Protocols:   protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return listener.dial() },
	}
	return startOn(t, listener, transport, "http://hubcloud", change), listener
}

func startOn(
	t *testing.T, listener net.Listener, transport *http.Transport, base string,
	change func(*Config),
) *service {
	t.Helper()
	w := newWorld()
	draining := make(chan struct{})
	s := &service{
		world: w, t: t, base: base, client: &http.Client{Transport: transport},
		logged: &lockedBuffer{},
		drain:  sync.OnceFunc(func() { close(draining) }),
	}
	s.bearer, s.revoke = w.addKey(orgOne, 1, domain.AllScopes()...)
	cfg := Config{
		Keys: w, Hubs: hubAccess{w}, ReadModels: w, Directory: w, Devices: live{w},
		Commands: live{w}, Idempotency: &remembered{}, Events: w, Enrolment: w,
		Environment: domain.EnvironmentDev, Rate: 1e5, Burst: 1e5, Draining: draining,
		Logger: slog.New(slog.NewJSONHandler(s.logged, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	api := newAPI(t, cfg)
	server := NewServer(api, cfg.Logger)
	server.Protocols = transport.Protocols
	s.server, s.api = server, api
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(api.Listener(listener))
	}()
	t.Cleanup(func() {
		s.drain()
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		<-served
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.readers != 0 {
			t.Errorf("%d readers of events were not closed", w.readers)
		}
	})
	return s
}

// pipeListener is a listener of in-memory pipes.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- addressed{server}:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1"))
}

// answer is a completely read response.
type answer struct {
	*http.Response
	body string
}

// do sends a request with the service's key. headers has names and values in turn; an empty value
// removes the header.
func (s *service) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, s.base+path, reader)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", s.bearer)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Del(pair[0])
		if pair[1] != "" {
			req.Header.Set(pair[0], pair[1])
		}
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{res, string(content)}
}

// wantError checks that a is an error of the contract's form and returns its message.
func wantError(t *testing.T, a answer, status int, code domain.Code) string {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf(
			"%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status,
			a.body,
		)
	}
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("Content-Type %q", got)
	}
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	var body struct {
		Error struct {
			Type      domain.Code `json:"type"`
			Message   string      `json:"message"`
			RequestID string      `json:"request_id"`
		} `json:"error"`
	}
	if err := decoder.Decode(&body); err != nil {
		t.Fatalf("error body %q: %v", a.body, err)
	}
	if body.Error.Type != code || body.Error.Message == "" {
		t.Errorf("error body %s, want type %s and a message", a.body, code)
	}
	if id := a.Header.Get("X-Request-Id"); id == "" || id != body.Error.RequestID {
		t.Errorf("X-Request-Id %q, body %s", id, a.body)
	}
	return body.Error.Message
}
