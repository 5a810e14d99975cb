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
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, append(
		streamstest.Leaks(),
		// nats-server 2.15 leaks one for each atomic batch that it cannot write to a full disk.
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*msgBlock).flushLoop"),
	)...)
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conns.Close)
	return conns
}

// mutualTLS returns a configuration for server and clients with a self-signed certificate.
func mutualTLS(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientCAs:    pool, RootCAs: pool, ServerName: "localhost",
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

// TestStreamsInEveryAccount checks that CLOUD and each shard have separate streams, reached in
// process and over the listener, and keep them over a restart with the same credentials.
func TestStreamsInEveryAccount(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	first := start(t, c)
	conns := connect(t, first)
	for n, nc := range append([]*nats.Conn{conns.Cloud}, conns.Shards...) {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: "KEEP", Subjects: []string{"keep"},
		}); err != nil {
			t.Fatalf("account %d: %v", n, err)
		}
		if _, err := js.Publish(t.Context(), "keep", []byte{byte(n)}); err != nil {
			t.Fatal(err)
		}
	}
	credentials := first.Credentials()
	conns.Close()
	stop(t, first)

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
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(overTCP.Close)
	for n, nc := range append([]*nats.Conn{overTCP.Cloud}, overTCP.Shards...) {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := js.Stream(t.Context(), "KEEP")
		if err != nil {
			t.Fatal(err)
		}
		if msg, err := stream.GetMsg(t.Context(), 1); err != nil || msg.Data[0] != byte(n) {
			t.Errorf("message of account %d: got %v, error %v, want %d", n, msg, err, n)
		}
	}
}

// TestSecretsOnDisk checks that only the owner can read the credentials and the streams.
func TestSecretsOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, config(t, dir))
	path := filepath.Join(dir, "nats-credentials.json")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode(); got != 0o600 {
		t.Errorf("mode of the credentials: got %v, want 0600", got)
	}
	if info, err = os.Stat(filepath.Join(dir, "nats")); err != nil {
		t.Fatal(err)
	}
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
}

// TestShardsAreFixed checks that a start with another number of shards fails. It would look for hub
// logs in the wrong accounts.
func TestShardsAreFixed(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	stop(t, start(t, c))
	c.Shards = 4
	_, err := broker.Start(t.Context(), c)
	if !errors.Is(err, broker.ErrShards) || !strings.Contains(err.Error(), "it has 3, got 4") {
		t.Fatalf("got %v, want ErrShards with both numbers", err)
	}
	c.Shards = 3
	start(t, c)
}

// TestLostFiles checks that lost credentials are generated again, and that damaged credentials or a
// lost number of shards end the start.
func TestLostFiles(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	s := start(t, c)
	js, err := jetstream.New(connect(t, s).Cloud)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "KEEP", Subjects: []string{"keep"},
	}); err != nil {
		t.Fatal(err)
	}
	stop(t, s)

	if err := os.Remove(filepath.Join(c.DataDir, "nats-credentials.json")); err != nil {
		t.Fatal(err)
	}
	s = start(t, c)
	connect(t, s)
	stop(t, s)

	path := filepath.Join(c.DataDir, "nats-credentials.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "remove the file") {
		t.Errorf("Start with damaged credentials: got %v, want the advice to remove the file", err)
	}
	if err := os.Remove(filepath.Join(c.DataDir, "nats", "installation.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "installation.json with their number of shards is missing") {
		t.Errorf("Start without the number of shards: got %v, want that its file is missing", err)
	}
}

// TestConfigIsValidated checks that Start fails at once for values that it cannot use.
func TestConfigIsValidated(t *testing.T) {
	t.Parallel()
	inUse, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inUse.Close() })
	for what, change := range map[string]struct {
		edit func(*broker.Config)
		want string
	}{
		"no data directory": {func(c *broker.Config) { c.DataDir = "" }, "data directory"},
		"too many shards": {
			func(c *broker.Config) { c.Shards = streams.MaxShards + 1 }, "1 to 256",
		},
		"negative shards": {func(c *broker.Config) { c.Shards = -1 }, "1 to 256"},
		"no TLS": {
			func(c *broker.Config) { c.MQTTTLS = nil }, "client certificates",
		},
		"optional client certificates": {
			func(c *broker.Config) { c.MQTTTLS.ClientAuth = tls.VerifyClientCertIfGiven },
			"client certificates",
		},
		"address without port": {
			func(c *broker.Config) { c.MQTTAddr = "localhost" }, "MQTT address",
		},
		"port out of range": {
			func(c *broker.Config) { c.NATSAddr = "localhost:70000" }, "NATS address",
		},
		"MQTT port in use": {
			func(c *broker.Config) { c.MQTTAddr = inUse.Addr().String() },
			"address already in use",
		},
		"NATS port in use": {
			func(c *broker.Config) { c.NATSAddr = inUse.Addr().String() },
			"address already in use",
		},
		"negative sync interval": {
			func(c *broker.Config) { c.SyncInterval = -time.Second }, "sync interval",
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := config(t, t.TempDir())
			change.edit(&c)
			began := time.Now()
			s, err := broker.Start(t.Context(), c)
			if err == nil {
				stop(t, s)
			}
			if err == nil || !strings.Contains(err.Error(), change.want) {
				t.Errorf("got %v, want an error with %q", err, change.want)
			}
			if took := time.Since(began); took > testTimeout/2 {
				t.Errorf("Start took %v, want an error at once", took)
			}
		})
	}
}

// TestEveryAddress checks that an MQTT address without a host accepts connections over IPv4 and
// IPv6.
func TestEveryAddress(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	c.MQTTAddr = ":0"
	_, port, err := net.SplitHostPort(start(t, c).MQTTAddr())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "::1"} {
		if host == "::1" && !haveIPv6() {
			continue
		}
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), testTimeout)
		if err != nil {
			t.Error(err)
			continue
		}
		conn.Close()
	}
}

func haveIPv6() bool {
	probe, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		return false
	}
	return probe.Close() == nil
}

// TestMetrics checks the metrics of a broker without hub logs.
func TestMetrics(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	registry := prometheus.NewPedanticRegistry()
	c.Metrics = registry
	start(t, c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		metric := family.GetMetric()[0]
		found[family.GetName()] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
	}
	// Each shard has a stream that rejects retained messages.
	if got := found["hubcloud_broker_streams"]; got != 3 {
		t.Errorf("hubcloud_broker_streams: got %v, want 3", got)
	}
	if got := found["hubcloud_broker_storage_limit_bytes"]; got <= 0 {
		t.Errorf("hubcloud_broker_storage_limit_bytes: got %v, want the size of the disk", got)
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

// TestStartAndStop checks that repeated and cancelled starts leave no temporary files.
func TestStartAndStop(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	for range 3 {
		stop(t, start(t, c))
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := broker.Start(cancelled, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a cancelled context: got %v, want context.Canceled", err)
	}
	left, err := filepath.Glob(filepath.Join(c.DataDir, "*.json.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files: got %v, error %v, want none", left, err)
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "nats", "installation.json")); err != nil {
		t.Errorf("installation.json: got %v, want the file", err)
	}
}
