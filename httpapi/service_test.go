package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
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
	"hubcloud/httpapi/portal"
	"hubcloud/projections/projectionstest"
	"hubcloud/streams/installationtest"
	"hubcloud/streams/once"
	"hubcloud/streams/streamstest"
)

// service is an API on a server of its own, and a client of it.
type service struct {
	*world
	t      testing.TB
	base   string
	client *http.Client
	bearer string // of a key of orgOne with every scope
	revoke func()
	drain  func()
	server *http.Server
	api    API
	logged *streamstest.LogLines
	// ids replaces the constants in requests by real ids, and constants the ids in responses by
	// the constants. nil replaces nothing.
	ids, constants *strings.Replacer
}

// newAPI returns an API that discards its log unless cfg has a logger.
func newAPI(t testing.TB, cfg Config) API {
	t.Helper()
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	api, err := New(cfg)
	streamstest.Must(t, err)
	return api
}

// start serves on a loopback port.
func start(t testing.TB, change func(*Config)) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	return startOn(t, listener, &http.Transport{}, "http://"+listener.Addr().String(), change)
}

// startReal serves the real directory, its read models and the real idempotency keys, for an
// organization of its own. In requests orgOne's ids stand for that organization, and siteTwo,
// hubTwo and memberForeign for another one. Hubs' answers and event logs are world's.
func startReal(t testing.TB, change func(*Config)) *service {
	t.Helper()
	b := projectionstest.Shared()
	own, other := b.NewOrganization(t, "Mill", owner), b.NewOrganization(t, "Quay", owner)
	admin := own.NewMember(t, "bo+1@example.org", domain.RoleAdmin)
	hub, foreignHub := own.NewHub(t), other.NewHub(t)
	invitation, err := b.Directory.Invite(
		t.Context(), installationtest.Operator, own.ID, "cy@example.org", domain.AccessAdmin,
	)
	streamstest.Must(t, err)
	webhook, err := b.Directory.CreateWebhook(
		t.Context(), installationtest.Operator, own.ID, "",
		domain.WebhookTarget{URL: "http://127.0.0.1:1/"}, newWebhooks(t).Seal,
	)
	streamstest.Must(t, err)
	_, bearer := own.NewKey(t, domain.AllScopes()...)
	keys, err := once.New(b.Conns, once.Config{ReplicaID: rand.Text()})
	streamstest.Must(t, err)
	t.Cleanup(keys.Close)
	s := start(t, func(c *Config) {
		c.Keys, c.Hubs, c.ReadModels, c.Directory = b.Access, b.Access, b.Store, b.Directory
		c.Idempotency, c.Audit, c.Codes = keys, realAudit{b.Store, b.Access}, newCodes(t, b)
		c.Attention = portal.New(portal.Config{
			ReadModels: b.Store, Directory: b.Directory, Reported: b.Store, Faults: noFaults{},
			DisconnectReason: func(domain.HubID) *string { return nil },
		})
		if change != nil {
			change(c)
		}
	})
	s.bearer, s.world.hub.id = bearer, hub
	pairs := []string{
		siteOne, own.SiteID, siteTwo, other.SiteID, memberOwner, own.Owner.ID,
		memberAdmin, admin.ID, memberForeign, other.Owner.ID, invitationOne, invitation.ID,
		webhookOne, webhook.ID,
		string(hubOne), string(hub), string(hubTwo), string(foreignHub),
		strings.ToUpper(string(hubOne)), strings.ToUpper(string(hub)),
	}
	s.ids = strings.NewReplacer(pairs...)
	slices.Reverse(pairs)
	s.constants = strings.NewReplacer(pairs...)
	return s
}

// startInBubble serves on in-memory pipes, which testing/synctest can wait for.
func startInBubble(
	t *testing.T, change func(*Config), protocols *http.Protocols,
) (*service, *pipeListener) {
	t.Helper()
	listener := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	transport := &http.Transport{
		Protocols: protocols,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return listener.dial()
		},
	}
	return startOn(t, listener, transport, "http://hubcloud", change), listener
}

func startOn(
	t testing.TB, listener net.Listener, transport *http.Transport, base string,
	change func(*Config),
) *service {
	t.Helper()
	w := newWorld()
	draining := make(chan struct{})
	s := &service{
		world: w, t: t, base: base, client: &http.Client{Transport: transport},
		logged: &streamstest.LogLines{},
		drain:  sync.OnceFunc(func() { close(draining) }),
	}
	s.bearer, s.revoke = w.addKey(orgOne, 1, domain.AllScopes()...)
	cfg := Config{
		Keys: w, Hubs: hubAccess{w}, ReadModels: w, Directory: w, PastStates: w,
		Devices:  live{w},
		Commands: live{w}, Events: w, OrgEvents: worldFeed{w}, FeedReaders: w, Enrolment: w,
		Webhooks:    newWebhooks(t),
		Audit:       noAudit{},
		Attention:   w,
		Environment: domain.EnvironmentDev, Rate: 1e5, Burst: 1e5, Draining: draining,
		Logger: s.logged.Logger(),
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
		if strings.HasPrefix(base, "https://") {
			_ = server.Serve(api.TLSListener(listener, serverTLS()))
			return
		}
		_ = server.Serve(api.Listener(listener))
	}()
	t.Cleanup(func() {
		s.drain()
		transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("Shutdown: got %v, want nil", err)
		}
		<-served
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.readers != 0 {
			t.Errorf("got %d open readers of events, want 0", w.readers)
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

// do sends a request with the service's key. headers has names and values in turn, which replace
// those of the header; an empty value removes the header.
func (s *service) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	if s.ids != nil {
		path, body = s.ids.Replace(path), s.ids.Replace(body)
	}
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, s.base+path, reader)
	streamstest.Must(s.t, err)
	req.Header.Set("Authorization", s.bearer)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Del(pair[0])
	}
	for pair := range slices.Chunk(headers, 2) {
		if pair[1] != "" {
			req.Header.Add(pair[0], pair[1])
		}
	}
	res, err := s.client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: got %v, want an answer", method, path, err)
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: got %v, want a body", method, path, err)
	}
	return answer{res, string(content)}
}

// wantError checks that a is an error of the contract's form and returns its message.
func wantError(t testing.TB, a answer, status int, code domain.Code) string {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf(
			"%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status,
			a.body,
		)
	}
	if got := a.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("got Content-Type %q, want application/json", got)
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
		t.Fatalf("error body %q: got %v, want one error", a.body, err)
	}
	if body.Error.Type != code || body.Error.Message == "" {
		t.Errorf("error body %s, want type %s and a message", a.body, code)
	}
	if id := a.Header.Get("X-Request-Id"); id == "" || id != body.Error.RequestID {
		t.Errorf("got X-Request-Id %q, body %s, want the same id in both", id, a.body)
	}
	return body.Error.Message
}
