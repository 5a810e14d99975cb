package deploy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hubcloud/hubbridge/kit/virtualhub"
	"hubcloud/projections/cluster"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// TestProxiesAreTheSame checks that the proxy for plain machines and that of compose have the same
// limits, time limits and checks: they differ only in names, and in how names are looked up.
func TestProxiesAreTheSame(t *testing.T) {
	t.Parallel()
	settings := func(name string) (all []string) {
		for line := range strings.Lines(string(read(t, name))) {
			line = strings.TrimSpace(line)
			word, _, _ := strings.Cut(line, " ")
			switch {
			case line == "", strings.HasPrefix(line, "#"), slices.Contains([]string{
				"log", "user", "group", "resolvers", "parse-resolv-conf", "hold",
			}, word):
			case word == "server":
				all = append(all, strings.Join(strings.Fields(line)[:2], " "))
			default:
				all = append(all, strings.Replace(line, "init-addr none resolvers inside ", "", 1))
			}
		}
		return all
	}
	plain, compose := settings("haproxy/haproxy.cfg"), settings("compose/haproxy.cfg")
	if !slices.Equal(plain, compose) || len(plain) < 30 {
		t.Errorf(
			"haproxy/haproxy.cfg has\n%s\nand compose/haproxy.cfg\n%s",
			strings.Join(plain, "\n"), strings.Join(compose, "\n"),
		)
	}
}

// TestBehindTheProxy runs HAProxy with the configuration for plain machines in front of two
// replicas with three brokers and a database, and requests everything through it.
//
// A regression: during a rolling restart requests got 503 or waited for seconds, because the proxy
// repeated them at the replica that had stopped; and while PostgreSQL was away every request got
// 503, because no replica was ready.
func TestBehindTheProxy(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("NOT TRIED: needs haproxy")
	}
	database := &database{dir: filepath.Join(t.TempDir(), "postgres")}
	database.start(t)
	t.Cleanup(func() { database.stop(t) })
	hosts := []string{"127.0.2.2", "127.0.2.3", "127.0.2.4"}
	brokers := natscluster.New(t, "4", hosts, database.running.URL())
	brokers.Start()
	replicas := []*harness.Service{brokers.Join(), brokers.Join()}
	tenant := harness.NewTenant(t, replicas[0], "Proxied")
	hub := harness.TargetOf(t, replicas[0]).VirtualHub(tenant, virtualhub.Config{})
	proxied := tenant.For(t)
	proxy := startProxy(t, program, brokers, replicas)
	proxied.Client = harness.NewClient(t, proxy+"/v1", tenant.Key)

	t.Run("rolling restart", func(t *testing.T) {
		rollingRestart(t, proxied.For(t), string(hub.ID()), replicas)
	})
	t.Run("database away", func(t *testing.T) {
		databaseAway(t, proxied.For(t), string(hub.ID()), replicas, database)
	})
}

// startProxy runs HAProxy until the test ends, and returns its URL for the API.
func startProxy(
	t *testing.T, program string, brokers *natscluster.Cluster, replicas []*harness.Service,
) string {
	t.Helper()
	api, hubs := streamstest.FreeAddress(t), streamstest.FreeAddress(t)
	config := string(read(t, "haproxy/haproxy.cfg"))
	replace := func(old, with string) {
		t.Helper()
		if strings.Count(config, old) != 1 {
			t.Fatalf("haproxy.cfg: got %d times %q, want once", strings.Count(config, old), old)
		}
		config = strings.Replace(config, old, with, 1)
	}
	replace("  log /dev/log local0\n  user haproxy\n  group haproxy\n", "")
	replace("\n  bind :8080\n", "\n  bind "+api+"\n")
	replace("\n  bind :8883\n", "\n  bind "+hubs+"\n")
	for i, replica := range replicas {
		replace(fmt.Sprintf("192.0.2.1%d:8080", i+1), replica.HTTP)
	}
	for i, node := range brokers.Nodes {
		monitor, err := url.Parse(node.Monitor)
		harness.Must(t, err)
		replace(
			fmt.Sprintf("192.0.2.2%d:8883 port 8222", i+1),
			brokers.MQTT[i]+" port "+monitor.Port(),
		)
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	harness.Must(t, os.WriteFile(file, []byte(config), 0o600))
	proxy := exec.Command(program, "-db", "-f", file)
	proxy.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	proxy.Stderr = os.Stderr
	harness.Must(t, proxy.Start())
	t.Cleanup(func() {
		_ = proxy.Process.Kill() // it may have ended
		_ = proxy.Wait()
	})
	streamstest.Eventually(t, "the proxy passes requests on", func() bool {
		answer, err := http.Get("http://" + api + "/healthz")
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
	return "http://" + api
}

// rollingRestart restarts one replica after the other under a load of requests, none of which may
// fail.
func rollingRestart(
	t *testing.T, tenant *harness.Tenant, hub string, replicas []*harness.Service,
) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var load sync.WaitGroup
	var mu sync.Mutex
	requests, longest := 0, time.Duration(0)
	requestsOf := []struct {
		method, path string
		body         any
		want         int
	}{
		{http.MethodGet, "/sites", nil, http.StatusOK},
		{http.MethodGet, "/hubs/" + hub + "/events?limit=1", nil, http.StatusOK},
		{http.MethodGet, "/hubs/" + hub + "/devices", nil, http.StatusOK},
		{
			http.MethodPost, "/hubs/" + hub + "/devices/1/commands",
			map[string]any{"key": "lock", "value": true}, http.StatusAccepted,
		},
	}
	for i := range 8 {
		load.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				r := requestsOf[n%len(requestsOf)]
				began := time.Now()
				answer, err := tenant.Try(r.method, r.path, r.body)
				took := time.Since(began)
				// The proxy cannot know whether a replica that has closed the connection has made a
				// change, so it does not repeat that.
				closed := r.method == http.MethodPost &&
					(err != nil || answer.Status == http.StatusBadGateway)
				if !closed && (err != nil || answer.Status != r.want) {
					t.Errorf(
						"%s %s: got %d %s, %v after %s, want %d", r.method, r.path, answer.Status,
						answer.Body, err, took, r.want,
					)
				}
				mu.Lock()
				requests, longest = requests+1, max(longest, took)
				mu.Unlock()
			}
		})
	}
	served := func() int {
		mu.Lock()
		defer mu.Unlock()
		return requests
	}
	for range 2 {
		for _, replica := range replicas {
			before := served()
			replica.Stop()
			replica.Begin()
			streamstest.Eventually(t, "requests go on", func() bool { return served() > before+100 })
			// As an operator who waits until the proxy sees the replica again.
			waitReady(t, replica)
		}
	}
	cancel()
	load.Wait()
	t.Logf("%d requests, the longest took %s", requests, longest)
}

// waitReady waits until a replica has been ready for longer than the proxy's interval of checks.
func waitReady(t *testing.T, replica *harness.Service) {
	t.Helper()
	since := time.Now()
	streamstest.Eventually(t, "a replica is ready", func() bool {
		if status, _ := readiness(t, replica.Public()); status != http.StatusOK {
			since = time.Now()
		}
		return time.Since(since) > 3*time.Second
	})
}

// databaseAway stops the database. What needs none works through the proxy, and what needs it is
// answered 503 service_unavailable by a replica. A replica that is started meanwhile serves too.
func databaseAway(
	t *testing.T, tenant *harness.Tenant, hub string, replicas []*harness.Service, database *database,
) {
	stream := tenant.Stream("/hubs/"+hub+"/events/stream", "")
	database.stop(t)
	degraded := func(replica *harness.Service) {
		t.Helper()
		streamstest.Eventually(t, "a replica is degraded", func() bool {
			status, body := readiness(t, replica.Public())
			return status == http.StatusOK && body == `{"status":"degraded","degraded":["read_models"]}`
		})
		if got := replica.Metrics().Value(
			t, "hubcloud_degraded", "component", "read_models",
		); got != 1 {
			t.Errorf("hubcloud_degraded of read_models: got %v, want 1", got)
		}
	}
	for _, replica := range replicas {
		degraded(replica)
	}
	check := func() {
		t.Helper()
		for range 2 * len(replicas) { // each replica gets some
			for _, path := range []string{"/sites", "/hubs", "/hubs/" + hub, "/state", "/members"} {
				answer := tenant.Rejected(http.MethodGet, path, nil, "service_unavailable")
				if answer.Message == "" {
					t.Errorf("%s: got no message", path)
				}
			}
			tenant.Must(http.MethodGet, "/hubs/"+hub+"/events?limit=1", nil, http.StatusOK)
			tenant.Must(http.MethodGet, "/events?limit=1", nil, http.StatusOK)
			tenant.Must(http.MethodGet, "/hubs/"+hub+"/devices", nil, http.StatusOK)
			tenant.Must(
				http.MethodPost, "/hubs/"+hub+"/devices/1/commands",
				map[string]any{"key": "lock", "value": true}, http.StatusAccepted,
			)
		}
	}
	check()
	var site struct{ ID string }
	tenant.Must(
		http.MethodPost, "/sites", map[string]string{"name": "Made meanwhile"}, http.StatusCreated,
	).JSON(t, &site)
	stream.Next(t, time.Minute)
	for _, replica := range replicas {
		replica.Stop()
		replica.Begin()
		degraded(replica)
		waitReady(t, replica)
	}
	check()
	database.start(t)
	for _, replica := range replicas {
		streamstest.Eventually(t, "a replica is ready again", func() bool {
			_, body := readiness(t, replica.Public())
			return body == `{"status":"ready"}`
		})
	}
	streamstest.Eventually(t, "what was made meanwhile is read", func() bool {
		answer, err := tenant.Try(http.MethodGet, "/sites/"+site.ID, nil)
		return err == nil && answer.Status == http.StatusOK
	})
}

// readiness returns the answer of the public /readyz.
func readiness(t *testing.T, public string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(public + "/readyz")
	harness.Must(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	harness.Must(t, err)
	return answer.StatusCode, strings.TrimSpace(string(text))
}

// database is a PostgreSQL server that can be stopped and started again.
type database struct {
	dir     string
	running *cluster.Cluster
}

func (d *database) start(t *testing.T) {
	t.Helper()
	c, err := cluster.Start(
		context.Background(), cluster.Config{Dir: d.dir, Logger: slog.New(slog.DiscardHandler)},
	)
	harness.Must(t, err)
	d.running = c
}

func (d *database) stop(t *testing.T) {
	t.Helper()
	if err := d.running.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
