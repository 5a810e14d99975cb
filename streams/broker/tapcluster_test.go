package broker_test

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/crypto/bcrypt"

	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
)

// TestTapsForgeNothingInACluster: answers come over routes there, and are put into accounts by
// another server than the one that was asked.
func TestTapsForgeNothingInACluster(t *testing.T) {
	t.Parallel()
	single := start(t, config(t, t.TempDir()))
	layout, err := broker.NewLayout(single.Credentials())
	if err != nil {
		t.Fatal(err)
	}
	hash, err := bcrypt.GenerateFromPassword([]byte("test"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	// What the auth callout does: each user is in an account of its own, with a tap's permissions.
	for i, account := range layout.Accounts {
		for n, name := range []string{"tap-attacker", "tap-victim"} {
			if account.Name == streams.TapAccount(n) {
				permissions := streams.TapPermissions(name)
				layout.Accounts[i].Users = []broker.AccountUser{
					{Name: name, PasswordHash: string(hash), Permissions: &permissions},
				}
				layout.CalloutUsers = append(layout.CalloutUsers, name)
			}
		}
	}
	servers := startServers(t, layout)
	login := func(n int, user streams.User) (*nats.Conn, <-chan error) {
		t.Helper()
		reports := make(chan error, 1000)
		nc, err := nats.Connect(
			servers[n].ClientURL(),
			nats.UserInfo(user.User, user.Password),
			nats.CustomInboxPrefix(streams.TapInbox(user.User)),
			nats.ErrorHandler(
				func(_ *nats.Conn, _ *nats.Subscription, err error) { reports <- err },
			),
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc, reports
	}
	owner, _ := login(0, single.Credentials().Users[streams.ShardAccount(0)])
	js, err := jetstream.New(owner)
	if err != nil {
		t.Fatal(err)
	}
	const hub, stream = "hub-tapt-test-0000", "HUB_hub-tapt-test-0000"
	for deadline := time.Now().Add(time.Minute); ; {
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: stream, Subjects: []string{"log." + hub + ".>"}, AllowDirect: true, Replicas: 3,
			RePublish: &jetstream.RePublish{
				Source:      "log." + hub + ".>",
				Destination: "feed." + hub + ".>",
			},
		})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if _, err := js.Publish(t.Context(), "log."+hub+".event.device", []byte("1")); err != nil {
		t.Fatal(err)
	}
	attacker, reports := login(1, streams.User{User: "tap-attacker", Password: "test"})
	var witnesses []streamstest.Witness
	for n := range servers {
		victim, _ := login(n, streams.User{User: "tap-victim", Password: "test"})
		second, _ := login(n, streams.User{User: "tap-attacker", Password: "test"})
		witnesses = append(
			witnesses,
			streamstest.Witness{
				Conn:  victim,
				Inbox: streams.TapInbox("tap-victim"),
				Other: true,
			},
			streamstest.Witness{Conn: second},
		)
	}
	// A direct get is answered by whichever server has a copy: each round may take other ways.
	for range 3 {
		streamstest.TryReplies(t, attacker, reports, 0, stream, hub, owner, witnesses...)
	}
}

// startServers starts three servers as a cluster.
func startServers(t *testing.T, layout broker.Layout) []*server.Server {
	t.Helper()
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
	var servers []*server.Server
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
		servers = append(servers, s)
	}
	for n, s := range servers {
		if !s.ReadyForConnections(time.Minute) {
			t.Fatalf("server %d does not start", n)
		}
	}
	return servers
}
