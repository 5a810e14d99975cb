// Package streamstest starts brokers for tests: an embedded server in process with the accounts of
// the package broker and JetStream in a temporary directory. The server has no MQTT listener, and
// no service answers its auth callout; tests of those start a broker.Server.
package streamstest

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	dir         string
	credentials streams.Credentials

	mu     sync.Mutex
	server *server.Server
}

// New starts a broker that ends with the test.
func New(t testing.TB) *Broker {
	t.Helper()
	b := &Broker{dir: t.TempDir(), credentials: NewCredentials(t)}
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
	opts.DisableShortFirstPing = true // as the embedded broker: it fails clients on a busy machine
	opts.StoreDir = b.dir
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatalf("make the broker: %v", err)
	}
	s.Start()
	if !s.ReadyForConnections(startTimeout) {
		t.Fatalf("the broker is not ready after %v", startTimeout)
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
	return connect(t, b.Credentials(), append([]nats.Option{nats.InProcessServer(b)}, opts...)...)
}

func connect(t testing.TB, c streams.Credentials, opts ...nats.Option) *streams.Conns {
	t.Helper()
	conns, err := streams.Connect(t.Context(), c, append(opts, streams.WithLog(Logger()))...)
	if err != nil {
		t.Fatalf("connect to the broker: %v", err)
	}
	t.Cleanup(conns.Close)
	return conns
}

// JetStream returns the JetStream of a connection's account.
func JetStream(t testing.TB, nc *nats.Conn) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// InProcessConn connects to the server that runs now. It makes Broker a nats.InProcessConnProvider.
func (b *Broker) InProcessConn() (net.Conn, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server.InProcessConn()
}

// Dir returns the folder of the broker's files.
func (b *Broker) Dir() string { return b.dir }

// Credentials returns the credentials of the broker's accounts. They need nats.InProcessServer.
func (b *Broker) Credentials() streams.Credentials { return b.credentials }

// NewCredentials returns credentials for an embedded broker with Shards shards and a new issuer of
// hub credentials.
func NewCredentials(t testing.TB) streams.Credentials {
	t.Helper()
	issuer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := issuer.Seed()
	if err != nil {
		t.Fatal(err)
	}
	c := streams.Credentials{
		URL: "nats://in-process", Shards: Shards, IssuerSeed: string(seed),
		Users: map[streams.Account]streams.User{},
	}
	for _, account := range append(c.Accounts(), streams.AccountTap) {
		c.Users[account] = streams.User{User: strings.ToLower(string(account)), Password: "test"}
	}
	return c
}
