package streamstest

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hubcloud/streams"
	"hubcloud/streams/broker"
)

// Cluster is a cluster of three servers that a test can stop and start again.
type Cluster struct {
	Servers []*server.Server
	layout  broker.Layout
	routes  []*url.URL
	dirs    []string
}

// NewCluster starts a cluster of three servers with the accounts of layout, which listen for clients
// on 127.0.0.1. The servers end with the test.
func NewCluster(t testing.TB, layout broker.Layout) *Cluster {
	t.Helper()
	c := &Cluster{layout: layout}
	for range 3 { // free ports, which servers may give up and take again
		c.routes = append(c.routes, &url.URL{Scheme: "nats", Host: FreeAddress(t)})
	}
	c.Servers = make([]*server.Server, len(c.routes))
	for n := range c.routes {
		c.dirs = append(c.dirs, t.TempDir())
		c.start(t, n)
	}
	t.Cleanup(func() {
		for n := range c.Servers {
			c.Stop(n)
		}
	})
	for n := range c.Servers {
		c.awaitReady(t, n)
	}
	// A stream that is made earlier gets copies on fewer servers than it asks for, or none.
	Eventually(t, "a leader knows all servers, and they follow it", func() bool {
		return slices.ContainsFunc(c.Servers, func(s *server.Server) bool {
			return s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(c.Servers)
		}) && !slices.ContainsFunc(c.Servers, func(s *server.Server) bool {
			return !s.JetStreamIsCurrent()
		})
	})
	return c
}

// NewConnectedCluster is NewCluster with new credentials, and returns connections to the first
// server as well. They end with the test.
func NewConnectedCluster(t testing.TB) (*Cluster, *streams.Conns) {
	t.Helper()
	credentials := NewCredentials(t)
	layout, err := broker.NewLayout(credentials)
	if err != nil {
		t.Fatal(err)
	}
	c := NewCluster(t, layout)
	return c, connect(t, credentials, nats.InProcessServer(c.Servers[0]))
}

// Stop stops a server.
func (c *Cluster) Stop(n int) {
	c.Servers[n].Shutdown()
	c.Servers[n].WaitForShutdown()
}

// Start starts a server again after Stop, on its data.
func (c *Cluster) Start(t testing.TB, n int) {
	t.Helper()
	c.start(t, n)
	c.awaitReady(t, n)
}

// Dir returns the folder of a server's files.
func (c *Cluster) Dir(n int) string { return c.dirs[n] }

func (c *Cluster) start(t testing.TB, n int) {
	t.Helper()
	opts := &server.Options{}
	if err := opts.ProcessConfigString("jetstream {}\n" + c.layout.Text()); err != nil {
		t.Fatalf("configure server %d: %v", n, err)
	}
	port, err := strconv.Atoi(c.routes[n].Port())
	if err != nil {
		t.Fatal(err)
	}
	opts.ServerName, opts.StoreDir = fmt.Sprint("server-", n), c.dirs[n]
	opts.Tags = []string{opts.ServerName} // for tests that place streams
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", -1, true, true
	opts.DisableShortFirstPing = true // see Broker.Start
	opts.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
	opts.Routes = c.routes
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatalf("make server %d: %v", n, err)
	}
	s.Start()
	c.Servers[n] = s
}

func (c *Cluster) awaitReady(t testing.TB, n int) {
	t.Helper()
	if !c.Servers[n].ReadyForConnections(startTimeout) {
		t.Fatalf("server %d: not ready after %v", n, startTimeout)
	}
}
