package backup

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

// TestCluster restores a backup of one server into three that keep every stream on each of them,
// takes a backup of those while one of them is gone, and restores that to one server again.
func TestCluster(t *testing.T) {
	t.Parallel()
	from := newInstallation(t, 4, 20)
	dir, m := from.take(true)
	cluster := startCluster(t)
	if err := Restore(t.Context(), cluster.conns, m, RestoreConfig{
		Dir: dir, Replicas: 3, Origin: origin,
	}); err != nil {
		t.Fatal(err)
	}
	want := messages(t, from.conns.Cloud, streams.DirectoryStream)
	if got := messages(t, cluster.conns.Cloud, streams.DirectoryStream); len(got) < len(want) ||
		!slices.Equal(got[:len(want)], want) {
		t.Errorf("the directory has %d events in the cluster, and had %d", len(got), len(want))
	}
	hub := from.hubs[2]
	for stream, nc := range map[string]*nats.Conn{
		streams.DirectoryStream: cluster.conns.Cloud, "KV_presence": cluster.conns.Cloud,
		streams.HubStream(hub): cluster.conns.Shard(hub),
	} {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		found, err := js.Stream(t.Context(), stream)
		if err != nil || found.CachedInfo().Config.Replicas != 3 {
			t.Errorf("stream %s: %+v, %v", stream, found, err)
		}
	}

	cluster.servers[2].Shutdown()
	cluster.servers[2].WaitForShutdown()
	i := &installation{t: t, conns: cluster.conns}
	var again string
	for deadline := time.Now().Add(2 * time.Minute); ; {
		// What that server led has no leader for some seconds.
		again = t.TempDir()
		_, err := Write(t.Context(), i.conns, Config{Dir: again, HubLogs: true, Installation: "x"})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	to := restored(t, again)
	if got := messages(t, to.conns.Cloud, streams.DirectoryStream); len(got) < len(want) ||
		!slices.Equal(got[:len(want)], want) {
		t.Errorf("the directory has %d events at the end, and had %d", len(got), len(want))
	}
	page, err := to.logs.Page(t.Context(), hub, "", 100)
	if err != nil || len(page.Events) != 20 {
		t.Errorf("the hub's log has %d events, %v", len(page.Events), err)
	}
}

// cluster is three servers.
type cluster struct {
	servers []*server.Server
	conns   *streams.Conns
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	issuer, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := issuer.Seed()
	if err != nil {
		t.Fatal(err)
	}
	credentials := streams.Credentials{
		URL: "nats://in-process", Shards: streamstest.Shards,
		Users: map[streams.Account]streams.User{}, IssuerSeed: string(seed),
	}
	for _, account := range append(credentials.Accounts(), streams.AccountTap) {
		credentials.Users[account] = streams.User{
			User:     strings.ToLower(string(account)),
			Password: "test",
		}
	}
	layout, err := broker.NewLayout(credentials)
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{}
	var routes []*url.URL
	var taking []net.Listener
	for range 3 {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		taking = append(taking, taken)
		routes = append(routes, &url.URL{Scheme: "nats", Host: taken.Addr().String()})
	}
	for _, taken := range taking {
		taken.Close() // all at once, so that no address comes twice
	}
	for n, route := range routes {
		opts := &server.Options{}
		if err := opts.ProcessConfigString("jetstream {}\n" + layout.Text()); err != nil {
			t.Fatal(err)
		}
		opts.ServerName, opts.StoreDir = fmt.Sprint("server-", n), t.TempDir()
		opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", -1, true, true
		port, err := strconv.Atoi(route.Port())
		if err != nil {
			t.Fatal(err)
		}
		opts.Cluster, opts.Routes = server.ClusterOpts{
			Name: "test",
			Host: "127.0.0.1",
			Port: port,
		}, routes
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() {
			s.Shutdown()
			s.WaitForShutdown()
		})
		c.servers = append(c.servers, s)
	}
	for n, s := range c.servers {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatalf("server %d does not start", n)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for !slices.ContainsFunc(c.servers, (*server.Server).JetStreamIsLeader) || c.servers[0].NumRoutes() == 0 {
		if time.Now().After(deadline) {
			t.Fatal("the servers elect no leader")
		}
		<-time.After(20 * time.Millisecond)
	}
	c.conns, err = streams.Connect(
		t.Context(), credentials, nats.InProcessServer(c.servers[0]),
		streams.WithLog(slog.New(slog.DiscardHandler)),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conns.Close)
	return c
}
