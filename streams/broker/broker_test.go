package broker_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, streamstest.Leaks()...)
}

const testTimeout = time.Minute

func config(t testing.TB, dir string) broker.Config {
	return broker.Config{
		DataDir: dir, Shards: 3, NATSAddr: "127.0.0.1:0", MQTTAddr: "127.0.0.1:0",
		MQTTTLS: mutualTLS(t), Logger: slog.New(slog.DiscardHandler),
	}
}

func start(t testing.TB, c broker.Config) *broker.Server {
	t.Helper()
	s, err := broker.Start(t.Context(), c)
	streamstest.Must(t, err)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t testing.TB, s *broker.Server) {
	t.Helper()
	if err := s.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func connect(t testing.TB, s *broker.Server) *streams.Conns {
	t.Helper()
	conns, err := s.Connect(t.Context())
	streamstest.Must(t, err)
	t.Cleanup(conns.Close)
	return conns
}

// mutualTLS returns a configuration for server and clients with a self-signed certificate.
func mutualTLS(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	streamstest.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	streamstest.Must(t, err)
	certificate, err := x509.ParseCertificate(der)
	streamstest.Must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientCAs:    pool, RootCAs: pool, ServerName: "localhost",
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

// TestStreamsInEveryAccount checks that CLOUD and each shard have separate streams, reached in
// process and over the listener, and keep them over a restart with the same credentials. A start
// with another number of shards fails: it would look for hub logs in the wrong accounts.
func TestStreamsInEveryAccount(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	first := start(t, c)
	fill(t, connect(t, first))
	want := contents(t, connect(t, first))
	credentials := first.Credentials()
	stop(t, first)

	c.Shards = 4
	_, err := broker.Start(t.Context(), c)
	if !errors.Is(err, broker.ErrShards) || !strings.Contains(err.Error(), "it has 3, got 4") {
		t.Fatalf("another number of shards: got %v, want ErrShards with both numbers", err)
	}
	c.Shards = 0 // the installation's
	second := start(t, c)
	kept := second.Credentials()
	credentials.URL = kept.URL // with another port
	if credentials.CloudURL != kept.CloudURL {
		t.Errorf("durable server: got %s, want %s again", kept.CloudURL, credentials.CloudURL)
	}
	for account, user := range credentials.Users {
		if kept.Users[account] != user {
			t.Errorf("user of account %s: got another one after the restart", account)
		}
	}
	overTCP, err := streams.Connect(t.Context(), credentials)
	streamstest.Must(t, err)
	t.Cleanup(overTCP.Close)
	if got := contents(t, overTCP); !slices.Equal(got, want) {
		t.Errorf("streams after a restart: got\n%q\nwant\n%q", got, want)
	}
}

// TestStart checks that only the owner can read the credentials and the streams, that an MQTT
// address without a host accepts connections over IPv4 and IPv6, and the metrics of a broker
// without hub logs.
func TestStart(t *testing.T) {
	t.Parallel()
	dir, registry := t.TempDir(), prometheus.NewPedanticRegistry()
	c := config(t, dir)
	c.MQTTAddr, c.Metrics = ":0", registry
	s := start(t, c)
	path := filepath.Join(dir, "nats-credentials.json")
	info, err := os.Stat(path)
	streamstest.Must(t, err)
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode of the credentials: got %v, want 0600", got)
	}
	info, err = os.Stat(filepath.Join(dir, "nats"))
	streamstest.Must(t, err)
	if got := info.Mode().Perm(); got != 0o700 {
		t.Errorf("mode of the streams' folder: got %v, want 0700", got)
	}
	kept, err := streams.ReadCredentials(path)
	if err != nil || kept.URL != "nats://"+s.NATSAddr() || kept.Shards != 3 ||
		kept.IssuerSeed != s.Credentials().IssuerSeed {
		t.Errorf(
			"credentials on disk: got %s with %d shards, error %v, want nats://%s with 3", kept.URL,
			kept.Shards, err, s.NATSAddr(),
		)
	}
	_, port, err := net.SplitHostPort(s.MQTTAddr())
	streamstest.Must(t, err)
	for _, host := range []string{"127.0.0.1", "::1"} {
		probe, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			continue // the machine has no IPv6
		}
		probe.Close()
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), testTimeout)
		streamstest.Must(t, err)
		conn.Close()
	}
	// Each shard has a stream that rejects retained messages.
	if got := streamstest.MetricValue(t, registry, "hubcloud_broker_streams"); got != 3 {
		t.Errorf("hubcloud_broker_streams: got %v, want 3", got)
	}
	const limit = "hubcloud_broker_storage_limit_bytes"
	if got := streamstest.MetricValue(t, registry, limit); got <= 0 {
		t.Errorf("%s: got %v, want the size of the disk", limit, got)
	}
}

// TestLostFiles checks that lost credentials are generated again, and that damaged credentials or a
// lost number of shards end the start.
func TestLostFiles(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	s := start(t, c)
	createStreams(t, connect(t, s))
	stop(t, s)

	path := filepath.Join(c.DataDir, "nats-credentials.json")
	streamstest.Must(t, os.Remove(path))
	s = start(t, c)
	connect(t, s)
	stop(t, s)

	streamstest.Must(t, os.WriteFile(path, []byte("{"), 0o600))
	if _, err := broker.Start(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "remove the file") {
		t.Errorf("Start with damaged credentials: got %v, want the advice to remove the file", err)
	}
	streamstest.Must(t, os.Remove(filepath.Join(c.DataDir, "nats", "installation.json")))
	if _, err := broker.Start(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "installation.json with their number of shards is missing") {
		t.Errorf("Start without the number of shards: got %v, want that its file is missing", err)
	}
}

// TestConfigIsValidated checks that Start fails at once for values that it cannot use.
func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	inUse, err := net.Listen("tcp", "127.0.0.1:0")
	streamstest.Must(t, err)
	t.Cleanup(func() { inUse.Close() })
	for what, change := range map[string]struct {
		edit func(*broker.Config)
		want string
	}{
		"too many shards": {
			func(c *broker.Config) { c.Shards = streams.MaxShards + 1 }, "1 to 256",
		},
		"no TLS": {
			func(c *broker.Config) { c.MQTTTLS = nil }, "client certificates",
		},
		"optional client certificates": {
			func(c *broker.Config) { c.MQTTTLS.ClientAuth = tls.VerifyClientCertIfGiven },
			"client certificates",
		},
		"port out of range": {
			func(c *broker.Config) { c.NATSAddr = "localhost:70000" }, "NATS address",
		},
		"MQTT port in use": {
			func(c *broker.Config) { c.MQTTAddr = inUse.Addr().String() },
			"address already in use",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := config(t, t.TempDir())
			change.edit(&c)
			s, err := broker.Start(t.Context(), c)
			if err == nil {
				stop(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), change.want) {
				t.Errorf("got %v, want an error with %q", err, change.want)
			}
		})
	}
}

// TestWarnings checks that an ordinary start logs no warning, and that a start with a dangerous
// configuration does.
func TestWarnings(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	c := config(t, t.TempDir())
	c.Logger = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	stop(t, start(t, c))
	if lines.Len() > 0 {
		t.Errorf("ordinary start: want no warning, got:\n%s", lines.String())
	}
	c.SyncInterval = 2 * time.Minute
	c.ExpectedHubs = 1 << 40
	c.NATSAddr = ":0"
	stop(t, start(t, c))
	for _, want := range []string{
		"limit of open files too low", "power cut", "sync_interval=2m0s", "without TLS",
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("want %q in the log, got:\n%s", want, lines.String())
		}
	}
}

// TestHandshakesWaitForTheCallout checks that TLS handshakes of hubs wait until the auth
// callout has a subscriber, and fail when the broker stops.
func TestHandshakesWaitForTheCallout(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	s := start(t, c)
	conns := connect(t, s)
	handshakes := make(chan error, 2)
	handshake := func() {
		conn, err := tls.Dial("tcp", s.MQTTAddr(), c.MQTTTLS)
		if err == nil {
			err = conn.Close()
		}
		handshakes <- err
	}
	go handshake()
	go handshake()
	select {
	case err := <-handshakes:
		t.Fatalf("handshake without a subscriber: got %v, want that it waits", err)
	case <-time.After(200 * time.Millisecond):
	}
	sub, err := conns.Callout.QueueSubscribe("$SYS.REQ.USER.AUTH", "test", func(*nats.Msg) {})
	streamstest.Must(t, err)
	for range 2 {
		if err := <-handshakes; err != nil {
			t.Error(err)
		}
	}
	streamstest.Must(t, errors.Join(sub.Unsubscribe(), conns.Callout.Flush()))
	go handshake()
	select {
	case err := <-handshakes:
		t.Fatalf("handshake without a subscriber: got %v, want that it waits", err)
	case <-time.After(200 * time.Millisecond):
	}
	began := time.Now()
	stop(t, s)
	if err := <-handshakes; err == nil {
		t.Error("handshake with a stopped broker: got nil, want an error")
	}
	if took := time.Since(began); took > testTimeout/2 {
		t.Errorf("Close took %v, want less than %v", took, testTimeout/2)
	}
}
