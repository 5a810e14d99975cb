package natscluster

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hubcloud/projections/cluster"
	"hubcloud/streams/broker"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

// variable is an environment variable that makes the test binary run as nats-server.
const variable = "HUBCLOUD_TEST_NATS_SERVER"

// ServeIfRequested runs nats-server and exits, if this process was started as a server of a
// cluster. Call it first in TestMain.
func ServeIfRequested() {
	if os.Getenv(variable) == "" {
		return
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve is the main function of nats-server.
func serve() error {
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

// Cluster is three servers and a database. The servers use the same ports on different addresses.
type Cluster struct {
	t     testing.TB
	Nodes []*Node
	// Access makes a command use the cluster, and Arguments make `serve` use it and the database.
	Access    []string
	Arguments []string
	// MQTT has the MQTT address of each node. NATS has the client addresses of all, separated by
	// commas.
	MQTT []string
	NATS string
	// Renew runs broker-config again, which creates a new certificate.
	Renew func()
}

// Node is one server of a cluster.
type Node struct {
	t      testing.TB
	config string
	// Name is the server's name, Store the folder of its streams, Monitor the base URL of its
	// monitoring, and Profiler the address of its profiles.
	Name, Store, Monitor, Profiler string
	profilerPort                   string
	process                        *exec.Cmd
	ended                          chan struct{}
}

// StartOnLoopback starts a cluster on loopback addresses, and a database.
func StartOnLoopback(t testing.TB, shards string) *Cluster {
	t.Helper()
	return StartIn(t, t.TempDir(), shards)
}

// StartIn is StartOnLoopback with the servers' streams, their credentials and the authority in a
// folder. A cluster that was there before goes on.
func StartIn(t testing.TB, dir, shards string) *Cluster {
	t.Helper()
	b := newIn(t, dir, shards, []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"}, database(t))
	b.Start()
	return b
}

// New configures a cluster with a server at each of the IP addresses, and the database at an address.
// Call Start to start the servers.
func New(t testing.TB, shards string, hosts []string, database string) *Cluster {
	t.Helper()
	return newIn(t, t.TempDir(), shards, hosts, database)
}

func newIn(t testing.TB, dir, shards string, hosts []string, database string) *Cluster {
	t.Helper()
	b := &Cluster{t: t}
	client, route, mqtt, monitor := freePort(t), freePort(t), freePort(t), freePort(t)
	profiler := freePort(t)
	store := func(host string) string { return filepath.Join(dir, "store", host) }
	configure := func(hosts, host string) string {
		text, stderr, code := harness.RunBinary(
			t, "broker-config", "--nodes", hosts, "--out", dir, "--etc", dir,
			"--shards", shards, "--listen", host, "--client-port", client, "--route-port", route,
			"--mqtt-port", mqtt, "--monitor", net.JoinHostPort(host, monitor),
			"--store", store(host),
		)
		if code != 0 {
			t.Fatalf("broker-config: %s", stderr)
		}
		return text
	}
	var urls, addresses []string
	for _, host := range hosts {
		addresses = append(addresses, net.JoinHostPort(host, client))
		urls = append(urls, "tls://"+net.JoinHostPort(host, client))
		b.MQTT = append(b.MQTT, net.JoinHostPort(host, mqtt))
	}
	for i, host := range hosts {
		text := configure(strings.Join(hosts, ","), host)
		node := &Node{
			t: t, config: filepath.Join(dir, host+".conf"),
			Store:   store(host),
			Monitor: "http://" + net.JoinHostPort(host, monitor), Name: fmt.Sprintf("node-%d", i),
			Profiler: net.JoinHostPort(host, profiler), profilerPort: profiler,
		}
		harness.Must(t, os.WriteFile(node.config, []byte(text), 0o600))
		b.Nodes = append(b.Nodes, node)
		t.Cleanup(node.end)
	}
	b.NATS = strings.Join(addresses, ",")
	b.Renew = func() { configure(strings.Join(hosts, ","), hosts[0]) }
	b.Access = []string{
		"--nats-url", strings.Join(urls, ","), "--nats-credentials",
		filepath.Join(dir, "nats-credentials.json"),
	}
	b.Arguments = append(
		slices.Clone(b.Access), "--public-mqtt", b.MQTT[0], "--ca-cert",
		filepath.Join(dir, "ca", "ca.pem"), "--ca-key", filepath.Join(dir, "ca", "ca-key.pem"),
		"--log-replicas", "3", "--postgres-url", database, "--rate", "100000", "--burst", "100000",
	)
	return b
}

// Start starts every server and waits until each listens.
func (b *Cluster) Start() {
	b.t.Helper()
	for _, node := range b.Nodes {
		node.Start()
	}
	for _, address := range b.MQTT {
		streamstest.Eventually(b.t, address+" listens", func() bool {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				return false
			}
			return conn.Close() == nil
		})
	}
}

// Join starts a replica of the service on the cluster.
func (b *Cluster) Join() *harness.Service {
	b.t.Helper()
	return harness.Join(b.t, b.MQTT[0], b.NATS, b.Arguments...)
}

// Start starts the server, also after Kill.
func (n *Node) Start() {
	n.t.Helper()
	n.process = exec.Command(os.Args[0], "--config", n.config, "--profile", n.profilerPort)
	n.process.Env = append(
		os.Environ(), variable+"=1", broker.ServerNameVariable+"="+n.Name,
	)
	n.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.OpenFile(n.config+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	harness.Must(n.t, err)
	defer log.Close()
	n.process.Stderr = log
	harness.Must(n.t, n.process.Start())
	ended := make(chan struct{})
	n.ended = ended
	process := n.process
	go func() {
		defer close(ended)
		_ = process.Wait() // Wait reports the kill
	}()
}

// Reload makes the server reload its configuration.
func (n *Node) Reload() {
	n.t.Helper()
	harness.Must(n.t, n.process.Process.Signal(syscall.SIGHUP))
}

// Signal sends a signal to the server.
func (n *Node) Signal(signal syscall.Signal) {
	n.t.Helper()
	if err := n.process.Process.Signal(signal); err != nil {
		n.t.Error(err)
	}
}

// Kill sends SIGKILL, unless the server was not started.
func (n *Node) Kill() {
	if n.process == nil {
		return
	}
	_ = n.process.Process.Kill() // fails only when the process has exited
	<-n.ended
}

// Stop sends SIGTERM, and waits until the server has ended.
func (n *Node) Stop() {
	n.t.Helper()
	n.Signal(syscall.SIGTERM)
	<-n.ended
}

// end kills the server after the test. If that has failed, it logs the server's last warnings.
func (n *Node) end() {
	n.Kill()
	if !n.t.Failed() {
		return
	}
	text, err := os.ReadFile(n.config + ".log")
	if err != nil {
		n.t.Log(err)
		return
	}
	const most = 20
	warnings := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
		return line == "" || strings.Contains(line, "[INF]")
	})
	n.t.Logf(
		"last warnings of %s:\n%s", n.Name,
		strings.Join(warnings[max(0, len(warnings)-most):], "\n"),
	)
}

// PID returns the process id of the running server.
func (n *Node) PID() int { return n.process.Process.Pid }

// Healthy reports whether the server has caught up with its cluster.
func (n *Node) Healthy() bool {
	var answer struct{ Status string }
	return n.Get("/healthz", &answer) && answer.Status == "ok"
}

// Get requests a path of the server's monitoring port and decodes the answer. It reports whether
// that succeeded.
func (n *Node) Get(path string, into any) bool {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(n.Monitor + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(into) == nil
}

// database starts a Postgres and returns its address.
func database(t testing.TB) string {
	t.Helper()
	c, err := cluster.Start(
		t.Context(),
		cluster.Config{
			Dir:    filepath.Join(t.TempDir(), "postgres"),
			Logger: slog.New(slog.DiscardHandler),
		},
	)
	harness.Must(t, err)
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c.URL()
}

// freePort returns a reserved port.
func freePort(t testing.TB) string {
	t.Helper()
	_, port, err := net.SplitHostPort(streamstest.FreeAddress(t))
	harness.Must(t, err)
	return port
}
