package doctor

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
	"hubcloud/streams/streamstest"
)

// brokers are the servers of a cluster with the accounts of an installation.
type brokers struct {
	servers     []*server.Server
	credentials streams.Credentials
}

// startCluster starts servers, which the end of the test stops, and waits for a leader.
func startCluster(t *testing.T, count int) *brokers {
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
		Shards:     1,
		Users:      map[streams.Account]streams.User{},
		IssuerSeed: string(seed),
	}
	for _, account := range append(c.Accounts(), streams.AccountTap) {
		c.Users[account] = streams.User{
			User:     strings.ToLower(string(account)),
			Password: "pa55word",
		}
	}
	layout, err := broker.NewLayout(c)
	if err != nil {
		t.Fatal(err)
	}
	b := &brokers{credentials: c}
	ports := make([]int, count)
	var routes []*url.URL
	for i := range ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ports[i] = listener.Addr().(*net.TCPAddr).Port
		routes = append(routes, &url.URL{Scheme: "nats", Host: listener.Addr().String()})
		listener.Close()
	}
	for i, port := range ports {
		opts := &server.Options{}
		if err := opts.ProcessConfigString("jetstream {}\n" + layout.Text()); err != nil {
			t.Fatal(err)
		}
		opts.ServerName, opts.StoreDir = fmt.Sprintf("node-%d", i+1), t.TempDir()
		opts.NoLog, opts.NoSigs = true, true
		opts.Host, opts.Port = "127.0.0.1", server.RANDOM_PORT
		opts.Cluster.Name, opts.Cluster.Host, opts.Cluster.Port = "trial", "127.0.0.1", port
		opts.Routes = routes
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		b.servers = append(b.servers, s)
	}
	for _, s := range b.servers {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("a server did not start")
		}
	}
	b.credentials.URL = b.servers[0].ClientURL()
	streamstest.Eventually(t, "a server leads", func() bool {
		return slices.ContainsFunc(b.servers, (*server.Server).JetStreamIsLeader)
	})
	return b
}

// The doctor reports a missing server with the incomplete copies, and a cluster without a leader.
func TestMissingServers(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, 3)
	conns, err := streams.Connect(t.Context(), cluster.credentials)
	if err != nil {
		t.Fatal(err)
	}
	defer conns.Close()
	if _, err := directory.Open(t.Context(), conns, 3); err != nil {
		t.Fatal(err)
	}
	check := func() Component {
		ctx, cancel := context.WithTimeout(t.Context(), checkTimeout)
		defer cancel()
		target := newTarget(ctx, Config{
			Elsewhere: true, Credentials: cluster.credentials, Limits: limits(),
			Started: &installation.Started{LogReplicas: 3, ExternalBroker: true},
		})
		defer target.close()
		f := newFindings()
		checkBrokerAlone(ctx, target, errNoService, f)
		return f.component("broker")
	}
	streamstest.Eventually(
		t, "three servers are healthy", func() bool { return check().Verdict == OK },
	)
	if c := check(); !strings.Contains(c.Detail, "leads the cluster") ||
		!strings.Contains(c.Detail, "node-3") {
		t.Errorf("broker is %+v, want a leader and node-3", c)
	}
	cluster.servers[2].Shutdown()
	cluster.servers[2].WaitForShutdown()
	streamstest.Eventually(t, "the missing server is reported", func() bool {
		c := check()
		return c.Verdict == Wrong &&
			strings.Contains(c.Detail, "2 of the cluster's 3 servers answer") &&
			strings.Contains(c.Detail, "missing or incomplete copies: DIRECTORY")
	})
	cluster.servers[1].Shutdown()
	cluster.servers[1].WaitForShutdown()
	streamstest.Eventually(t, "the missing leader is reported", func() bool {
		c := check()
		return c.Verdict == Wrong &&
			strings.Contains(c.Detail, "1 of the cluster's 3 servers answer") &&
			strings.Contains(c.Detail, "no server leads")
	})
}
