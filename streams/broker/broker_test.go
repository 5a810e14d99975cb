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
	"io/fs"
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
		// Nats-server 2.15 leaves one behind for each atomic batch that it cannot write to a full
		// disk.
		goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server.(*msgBlock).flushLoop"),
	)...)
}

const patient = time.Minute

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

// mutualTLS is a certificate that vouches for itself, for both sides.
func mutualTLS(t testing.TB) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			1,
		), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"localhost"},
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
		Certificates: []tls.Certificate{
			{Certificate: [][]byte{der}, PrivateKey: key},
		}, ClientCAs: pool, RootCAs: pool, ServerName: "localhost",
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}
}

// TestStreamsInEveryAccount: CLOUD and each shard keep streams of their own, in process and over
// the listener, and they are there after a restart under the same credentials.
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

	c.Shards = 0 // whatever it was
	second := start(t, c)
	kept := second.Credentials()
	credentials.URL = kept.URL // the port is another
	for account, user := range credentials.Users {
		if kept.Users[account] != user {
			t.Errorf("account %s has another user", account)
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
			t.Errorf("account %d: %v, %v", n, msg, err)
		}
	}
}

// TestSecretsOnDisk: what opens the broker is readable by nobody else.
func TestSecretsOnDisk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := start(t, config(t, dir))
	path := filepath.Join(dir, "nats-credentials.json")
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("credentials: %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "nats")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("streams: %v, %v", info.Mode(), err)
	}
	kept, err := streams.ReadCredentials(path)
	if err != nil || kept.URL != "nats://"+s.NATSAddr() || kept.Shards != 3 ||
		kept.IssuerSeed != s.Credentials().IssuerSeed {
		t.Errorf("%s, %d shards, %v", kept.URL, kept.Shards, err)
	}
}

// TestShardsAreFixed: with another number of shards every hub's log would be looked for in the
// wrong place.
func TestShardsAreFixed(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	stop(t, start(t, c))
	c.Shards = 4
	_, err := broker.Start(t.Context(), c)
	if !errors.Is(err, broker.ErrShards) || !strings.Contains(err.Error(), "it has 3, got 4") {
		t.Fatalf("got %v", err)
	}
	c.Shards = 3
	start(t, c)
}

// TestLostFiles: what is lost beside the streams is made anew where that is safe, and missed where
// it is not.
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

	if err := os.WriteFile(filepath.Join(c.DataDir, "nats-credentials.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "remove the file") {
		t.Errorf("broken credentials: %v", err)
	}
	if err := os.Remove(filepath.Join(c.DataDir, "nats", "installation.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Start(t.Context(), c); err == nil ||
		!strings.Contains(err.Error(), "installation.json with their number of shards is missing") {
		t.Errorf("streams without an installation: %v", err)
	}
}

// TestBadConfigurations are refused before anything is made.
func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for what, change := range map[string]struct {
		edit func(*broker.Config)
		want string
	}{
		"no data directory": {func(c *broker.Config) { c.DataDir = "" }, "data directory"},
		"too many shards": {
			func(c *broker.Config) { c.Shards = streams.MaxShards + 1 }, "1 to 256",
		},
		"fewer than none": {func(c *broker.Config) { c.Shards = -1 }, "1 to 256"},
		"no TLS": {
			func(c *broker.Config) { c.MQTTTLS = nil }, "client certificates",
		},
		"TLS for everybody": {
			func(c *broker.Config) { c.MQTTTLS.ClientAuth = tls.VerifyClientCertIfGiven },
			"client certificates",
		},
		"an address without port": {
			func(c *broker.Config) { c.MQTTAddr = "localhost" }, "MQTT address",
		},
		"a port that is none": {
			func(c *broker.Config) { c.NATSAddr = "localhost:70000" }, "NATS address",
		},
		"MQTT port taken": {
			func(c *broker.Config) { c.MQTTAddr = taken.Addr().String() },
			"address already in use",
		},
		"NATS port taken": {
			func(c *broker.Config) { c.NATSAddr = taken.Addr().String() },
			"address already in use",
		},
		"no time in the past": {
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
			if took := time.Since(began); took > patient/2 {
				t.Errorf("took %v to say so", took)
			}
		})
	}
}

// TestEveryAddress: without a host hubs are heard on all of the machine's addresses, of both
// families.
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
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(host, port), patient)
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

// TestGate: hubs' handshakes wait until somebody answers the auth callout, and end when the broker
// does.
func TestGate(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	s := start(t, c)
	conns := connect(t, s)
	shakes := make(chan error, 2)
	shake := func() {
		conn, err := tls.Dial("tcp", s.MQTTAddr(), c.MQTTTLS)
		if err == nil {
			err = conn.Close()
		}
		shakes <- err
	}
	go shake()
	go shake()
	select {
	case err := <-shakes:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	sub, err := conns.Cloud.QueueSubscribe("$SYS.REQ.USER.AUTH", "test", func(*nats.Msg) {})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := <-shakes; err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(sub.Unsubscribe(), conns.Cloud.Flush()); err != nil {
		t.Fatal(err)
	}
	go shake()
	select {
	case err := <-shakes:
		t.Fatalf("did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	began := time.Now()
	stop(t, s)
	if err := <-shakes; err == nil {
		t.Error("shook hands with a broker that stopped")
	}
	if took := time.Since(began); took > patient/2 {
		t.Errorf("took %v to stop", took)
	}
}

// TestMetrics are there while the broker runs, and cannot be registered twice.
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
	if found["hubcloud_broker_streams"] != 3 { // one a shard, which refuses retained messages
		t.Errorf("streams: %v", found)
	}
	if found["hubcloud_broker_storage_limit_bytes"] <= 0 {
		t.Errorf("storage limit: %v", found)
	}
}

// TestWarnings: what an operator must know is said once, at the start, and the server's own chatter
// is not.
func TestWarnings(t *testing.T) {
	t.Parallel()
	var lines strings.Builder
	c := config(t, t.TempDir())
	c.Logger = slog.New(slog.NewTextHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn}))
	stop(t, start(t, c))
	if lines.Len() > 0 {
		t.Errorf("an ordinary start warns of something:\n%s", lines.String())
	}
	c.SyncInterval = 2 * time.Minute
	c.ExpectedHubs = 1 << 40
	c.NATSAddr = ":0"
	stop(t, start(t, c))
	for _, want := range []string{
		"limit of open files too low", "power cut", "sync_interval=2m0s",
		"without TLS",
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("nothing about %q in:\n%s", want, lines.String())
		}
	}
}

// TestStartAndStop leaves nothing behind, also when a start is broken off.
func TestStartAndStop(t *testing.T) {
	t.Parallel()
	c := config(t, t.TempDir())
	for range 3 {
		stop(t, start(t, c))
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := broker.Start(ended, c); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	left, err := filepath.Glob(filepath.Join(c.DataDir, "*.json.*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(c.DataDir, "nats", "installation.json")); errors.Is(
		err, fs.ErrNotExist,
	) {
		t.Error("the installation is gone")
	}
}
