package faults

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/projections/cluster"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// natsServerVariable is an environment variable that makes the test binary run as nats-server.
const natsServerVariable = "HUBCLOUD_TEST_NATS_SERVER"

// natsServer is the main function of nats-server.
func natsServer() error {
	flags := flag.NewFlagSet("nats-server", flag.ExitOnError)
	options, err := server.ConfigureOptions(
		flags, os.Args[1:], server.PrintServerAndExit, flags.Usage, server.PrintTLSHelpAndDie,
	)
	if err != nil {
		return err
	}
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		return err
	}
	s.WaitForShutdown()
	return nil
}

// externalBroker is a database and a cluster of three nats-servers, which `hubcloud broker-config`
// configured. The servers use the same ports on different loopback addresses.
type externalBroker struct {
	t     *testing.T
	dir   string
	nodes []*natsNode
	// arguments make `serve` use the cluster and the database.
	arguments []string
	mqtt      []string
	nats      string
	// renew runs broker-config again, which creates a new certificate.
	renew func()
}

// natsNode is one server of the cluster.
type natsNode struct {
	t       *testing.T
	under   []string
	config  string
	store   string
	monitor string
	name    string
	process *exec.Cmd
	ended   chan struct{}
}

// newExternalBroker starts a cluster on loopback addresses, and a database.
func newExternalBroker(t *testing.T, shards string) *externalBroker {
	t.Helper()
	places := make([]harness.Place, 3)
	for i := range places {
		places[i].Address = fmt.Sprintf("127.0.0.%d", i+2)
	}
	b := newBrokerAt(t, shards, places, database(t))
	b.start()
	return b
}

// newBrokerAt configures a cluster with a server at each place. Call start to start it.
func newBrokerAt(
	t *testing.T, shards string, places []harness.Place, database string,
) *externalBroker {
	t.Helper()
	b := &externalBroker{t: t, dir: t.TempDir()}
	client, route, mqtt, monitor := freePort(t), freePort(t), freePort(t), freePort(t)
	store := func(host string) string { return filepath.Join(b.dir, "store", host) }
	configure := func(hosts, host string) string {
		text, stderr, code := harness.RunBinary(
			t, "broker-config", "--nodes", hosts, "--out", b.dir, "--etc", b.dir,
			"--shards", shards, "--listen", host, "--client-port", client, "--route-port", route,
			"--mqtt-port", mqtt, "--monitor", net.JoinHostPort(host, monitor),
			"--store", store(host),
		)
		if code != 0 {
			t.Fatalf("broker-config: %s", stderr)
		}
		return text
	}
	var urls, addresses, hosts []string
	for _, at := range places {
		hosts = append(hosts, at.Address)
		addresses = append(addresses, net.JoinHostPort(at.Address, client))
		urls = append(urls, "tls://"+net.JoinHostPort(at.Address, client))
		b.mqtt = append(b.mqtt, net.JoinHostPort(at.Address, mqtt))
	}
	for i, host := range hosts {
		text := configure(strings.Join(hosts, ","), host)
		node := &natsNode{
			t: t, under: places[i].Under, config: filepath.Join(b.dir, host+".conf"),
			store:   store(host),
			monitor: "http://" + net.JoinHostPort(host, monitor), name: fmt.Sprintf("node-%d", i),
		}
		if err := os.WriteFile(node.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.nodes = append(b.nodes, node)
		t.Cleanup(node.kill)
	}
	b.nats = strings.Join(addresses, ",")
	b.renew = func() { configure(strings.Join(hosts, ","), hosts[0]) }
	b.arguments = []string{
		"--nats-url", strings.Join(urls, ","), "--nats-credentials",
		filepath.Join(b.dir, "nats-credentials.json"), "--public-mqtt", b.mqtt[0],
		"--ca-cert", filepath.Join(b.dir, "ca", "ca.pem"), "--ca-key",
		filepath.Join(b.dir, "ca", "ca-key.pem"), "--log-replicas", "3",
		"--postgres-url", database, "--rate", "100000", "--burst", "100000",
	}
	return b
}

// start starts every server and waits until each listens.
func (b *externalBroker) start() {
	b.t.Helper()
	for _, node := range b.nodes {
		node.start()
	}
	for _, address := range b.mqtt {
		streamstest.Eventually(b.t, address+" listens", func() bool {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return false
			}
			return conn.Close() == nil
		})
	}
}

// join starts a replica of the service on the cluster.
func (b *externalBroker) join() *harness.Service {
	b.t.Helper()
	return harness.Join(b.t, b.mqtt[0], b.nats, b.arguments...)
}

// start starts the server, also after kill.
func (n *natsNode) start() {
	n.t.Helper()
	line := append(append([]string{}, n.under...), os.Args[0], "--config", n.config)
	n.process = exec.Command(line[0], line[1:]...)
	n.process.Env = append(
		os.Environ(), natsServerVariable+"=1", broker.ServerNameVariable+"="+n.name,
	)
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(n.config+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	n.process.Stderr = log
	if err := n.process.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan struct{})
	n.ended = ended
	process := n.process
	go func() {
		defer close(ended)
		_ = process.Wait() // Wait reports the kill
	}()
}

// reload makes the server reload its configuration.
func (n *natsNode) reload() {
	n.t.Helper()
	if err := n.process.Process.Signal(syscall.SIGHUP); err != nil {
		n.t.Fatal(err)
	}
}

// signal sends a signal to the server.
func (n *natsNode) signal(signal syscall.Signal) {
	n.t.Helper()
	if err := n.process.Process.Signal(signal); err != nil {
		n.t.Error(err)
	}
}

// kill sends SIGKILL, unless the server was not started.
func (n *natsNode) kill() {
	if n.process == nil {
		return
	}
	_ = n.process.Process.Kill() // fails only when the process has exited
	<-n.ended
}

// database starts a Postgres and returns its address.
func database(t *testing.T) string {
	t.Helper()
	c, err := cluster.Start(
		t.Context(),
		cluster.Config{
			Dir:    filepath.Join(t.TempDir(), "postgres"),
			Logger: slog.New(slog.DiscardHandler),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c.URL()
}

// freePort returns a reserved port.
func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(harness.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}
