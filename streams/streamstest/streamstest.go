// Package streamstest gives tests a real broker: an embedded server with the accounts that the
// package broker lays out, JetStream on a temporary directory, reached in process. It has no MQTT
// listener, and nobody answers its auth callout; the package broker is the real thing.
package streamstest

import (
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"hubcloud/streams"
	"hubcloud/streams/broker"
)

// Shards is how many shards a test's broker has.
const Shards = 4

const startTimeout = time.Minute

// Start starts a broker that ends with the test, and connects to it.
func Start(t testing.TB) *streams.Conns {
	t.Helper()
	return New(t).Connect(t)
}

// Broker is a broker that a test can stop and start again on the same data.
type Broker struct {
	dir    string
	issuer string

	mu     sync.Mutex
	server *server.Server
}

// New starts a broker that ends with the test.
func New(t testing.TB) *Broker {
	t.Helper()
	issuer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := issuer.Seed()
	if err != nil {
		t.Fatal(err)
	}
	b := &Broker{dir: t.TempDir(), issuer: string(seed)}
	b.Start(t)
	t.Cleanup(b.Stop)
	return b
}

// Start starts the broker again after Stop. Connections come back by themselves.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	layout, err := broker.NewLayout(b.Credentials())
	if err != nil {
		t.Fatal(err)
	}
	opts := &server.Options{}
	if err := opts.ProcessConfigString("jetstream {}\n" + layout.Text()); err != nil {
		t.Fatalf("configure the broker: %v", err)
	}
	opts.ServerName = "streamstest"
	opts.DontListen, opts.NoLog, opts.NoSigs = true, true, true
	opts.StoreDir = b.dir
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatalf("make the broker: %v", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		t.Fatal("the broker does not start")
	}
	b.mu.Lock()
	b.server = s
	b.mu.Unlock()
}

// Stop stops the broker. Connections to it wait for the next Start.
func (b *Broker) Stop() {
	b.mu.Lock()
	s := b.server
	b.mu.Unlock()
	s.Shutdown()
	s.WaitForShutdown()
}

// Connect connects to every account; the connections end with the test.
func (b *Broker) Connect(t testing.TB, opts ...nats.Option) *streams.Conns {
	t.Helper()
	// What connections report when the broker is stopped on purpose would drown the test's own
	// words.
	quiet := streams.WithLog(slog.New(slog.DiscardHandler))
	conns, err := streams.Connect(
		t.Context(),
		b.Credentials(),
		append([]nats.Option{nats.InProcessServer(b), quiet}, opts...)...)
	if err != nil {
		t.Fatalf("connect to the broker: %v", err)
	}
	t.Cleanup(conns.Close)
	return conns
}

// InProcessConn makes Broker a nats.InProcessConnProvider: a connection to the server that runs
// now.
func (b *Broker) InProcessConn() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server.InProcessConn()
}

// Dir is where the broker keeps its files.
func (b *Broker) Dir() string { return b.dir }

// Credentials says how to reach the broker's accounts, by way of InProcessConn alone.
func (b *Broker) Credentials() streams.Credentials {
	c := streams.Credentials{
		URL:        "nats://in-process",
		Shards:     Shards,
		Users:      map[streams.Account]streams.User{},
		IssuerSeed: b.issuer,
	}
	for _, account := range append(c.Accounts(), streams.AccountTap) {
		c.Users[account] = streams.User{User: strings.ToLower(string(account)), Password: "test"}
	}
	return c
}
