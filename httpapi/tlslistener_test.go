package httpapi

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
)

// serverCertificate returns a certificate for 127.0.0.1 that signs itself.
var serverCertificate = sync.OnceValue(func() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
})

func serverTLS() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{serverCertificate()}}
}

// clientTLS returns a configuration that trusts serverCertificate and offers protocols.
func clientTLS(protocols ...string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(serverCertificate().Leaf)
	return &tls.Config{RootCAs: roots, NextProtos: protocols}
}

// startTLS serves HTTPS. The service's client uses HTTP/2 if multiplexed is set, else HTTP/1.1.
func startTLS(t *testing.T, multiplexed bool, change func(*Config)) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!multiplexed)
	protocols.SetHTTP2(multiplexed)
	transport := &http.Transport{TLSClientConfig: clientTLS(), Protocols: protocols}
	return startOn(t, listener, transport, "https://"+listener.Addr().String(), change)
}

// address returns HOST:PORT of a service.
func (s *service) address() string { return s.base[strings.Index(s.base, "//")+2:] }

// A client that never begins or completes its handshake counts as idle: it gives way to others.
func TestHandshakesAreBounded(t *testing.T) {
	t.Parallel()
	s := startTLS(t, true, func(c *Config) { c.Connections, c.ConnectionsPerAddress = 10, 5 })
	o := s.stream()
	o.expect("id: c0\n\n")
	for i := range 40 {
		conn, err := net.Dial("tcp", s.address())
		streamstest.Must(t, err)
		defer conn.Close()
		if i%2 == 1 {
			_, _ = conn.Write([]byte{22, 3, 1, 2, 0, 1}) // the begin of a ClientHello
		}
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: clientTLS(), ForceAttemptHTTP2: true, // with a connection of its own
	}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(s.base + "/healthz")
	if err != nil || answer.StatusCode != 200 {
		t.Fatalf("beside handshakes that hang: got %v, %v, want 200", answer, err)
	}
	answer.Body.Close()
	streamstest.Eventually(t, "at most 5 connections are open", func() bool {
		open, _, _ := s.tables()
		return open <= 5
	})
	// The stream's connection was busy, so it did not give way.
	if open, idle, _ := s.tables(); idle >= open {
		t.Errorf("got %d open and %d idle connections, want a busy one", open, idle)
	}
	s.drain()
	if rest, err := io.ReadAll(o.text); err != nil {
		t.Errorf("stream: got %q, %v, want its end", rest, err)
	}
}

// Requests that net/http rejects by itself get the API's error over TLS too, and so does a client
// that forgets TLS.
func TestUnreadableRequestsOverTLS(t *testing.T) {
	t.Parallel()
	s := startTLS(t, false, nil)
	secured, err := tls.Dial("tcp", s.address(), clientTLS(protocolHTTP1))
	streamstest.Must(t, err)
	defer secured.Close()
	plain, err := net.Dial("tcp", s.address())
	streamstest.Must(t, err)
	defer plain.Close()
	for name, c := range map[string]struct {
		conn        net.Conn
		sends, says string
	}{
		"malformed":   {secured, "GET\r\n\r\n", "well-formed"},
		"without TLS": {plain, "GET /v1/sites HTTP/1.1\r\nHost: h\r\n\r\n", "https://"},
	} {
		if _, err := c.conn.Write([]byte(c.sends)); err != nil {
			t.Fatal(err)
		}
		a := answerOn(t, bufio.NewReader(c.conn))
		if a.StatusCode != 400 || !strings.Contains(a.body, `"invalid_request"`) ||
			!strings.Contains(a.body, c.says) {
			t.Errorf("%s: got %d %s, want 400 with %q", name, a.StatusCode, a.body, c.says)
		}
	}
}

// Browsers are redirected; what sends a key or a secret without TLS is told to replace it.
func TestRedirect(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	redirect := s.api.Redirect("https://hubs.example.org")
	for name, c := range map[string]struct {
		method, target, key string
		status              int
		location            string
	}{
		"a page":        {"GET", "/portal/?a=b", "", 308, "https://hubs.example.org/portal/?a=b"},
		"another host":  {"HEAD", "//evil.example", "", 308, "https://hubs.example.org//evil.example"},
		"a key":         {"GET", "/v1/sites", s.bearer, 400, ""},
		"an enrolment":  {"POST", "/link/v1/certificates", "", 400, ""},
		"a form":        {"POST", "/portal/sign-in", "", 400, ""},
		"absolute form": {"GET", "http://evil.example/x", "", 308, "https://hubs.example.org/x"},
	} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		streamstest.Must(t, err)
		server := NewServer(redirect, s.api.api.Logger)
		go func() { _ = server.Serve(s.api.Listener(listener)) }()
		conn, err := net.Dial("tcp", listener.Addr().String())
		streamstest.Must(t, err)
		head := c.method + " " + c.target + " HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n"
		if c.key != "" {
			head += "Authorization: " + c.key + "\r\n"
		}
		if _, err := conn.Write([]byte(head + "\r\n")); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(
			bufio.NewReader(conn), &http.Request{Method: c.method},
		)
		streamstest.Must(t, err)
		if answer.StatusCode != c.status || answer.Header.Get("Location") != c.location {
			t.Errorf(
				"%s: got %d to %q, want %d to %q", name, answer.StatusCode,
				answer.Header.Get("Location"), c.status, c.location,
			)
		}
		conn.Close()
		server.Close()
	}
}

// Regression: an address could make handshakes as fast as its own processor allowed, which cost the
// service as much. Now further ones wait, and those of other addresses do not.
func TestHandshakesOfAnAddressWait(t *testing.T) {
	t.Parallel()
	s := startTLS(t, false, func(c *Config) {
		c.Rate, c.Burst, c.Now = 0.1, 1, func() time.Time { return day }
	})
	connect := func(from byte) time.Duration {
		begun := time.Now()
		dialer := &tls.Dialer{
			NetDialer: &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, from)}},
			Config:    clientTLS(),
		}
		conn, err := dialer.DialContext(t.Context(), "tcp", s.address())
		streamstest.Must(t, err)
		conn.Close()
		return time.Since(begun)
	}
	for range handshakeBurst {
		connect(3)
	}
	waited := make(chan time.Duration, 1)
	go func() { waited <- connect(3) }()
	connect(4)
	select {
	case <-waited:
		t.Error("another address waited too, or nobody did")
	default:
	}
	if took := <-waited; took < 2500*time.Millisecond {
		t.Errorf("after %d handshakes one more took %v, want 2.5 s", handshakeBurst, took)
	}
}
