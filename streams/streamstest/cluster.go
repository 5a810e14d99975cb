package streamstest

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/streams/broker"
)

// StartCluster starts a cluster of three servers with the accounts of layout, which listen for
// clients on 127.0.0.1. The servers end with the test.
func StartCluster(t testing.TB, layout broker.Layout) []*server.Server {
	t.Helper()
	routes := freeRoutes(t)
	servers := make([]*server.Server, len(routes))
	for n, route := range routes {
		opts := &server.Options{}
		if err := opts.ProcessConfigString("jetstream {}\n" + layout.Text()); err != nil {
			t.Fatalf("configure server %d: %v", n, err)
		}
		port, err := strconv.Atoi(route.Port())
		if err != nil {
			t.Fatal(err)
		}
		opts.ServerName, opts.StoreDir = fmt.Sprint("server-", n), t.TempDir()
		opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", -1, true, true
		opts.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
		opts.Routes = routes
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatalf("make server %d: %v", n, err)
		}
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		servers[n] = s
	}
	for n, s := range servers {
		if !s.ReadyForConnections(startTimeout) {
			t.Fatalf("server %d: not ready after %v", n, startTimeout)
		}
	}
	Eventually(t, "the servers have elected a leader", func() bool {
		return servers[0].NumRoutes() > 0 &&
			slices.ContainsFunc(servers, (*server.Server).JetStreamIsLeader)
	})
	return servers
}

// freeRoutes returns the URLs of three free ports.
func freeRoutes(t testing.TB) []*url.URL {
	t.Helper()
	var routes []*url.URL
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close() // after the last Listen: the three ports must differ
		routes = append(routes, &url.URL{Scheme: "nats", Host: listener.Addr().String()})
	}
	return routes
}
