package faults

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

var rounds = flag.Int("faults.rounds", 1, "how often TestOutages repeats its outages")

// recoveryTime is the longest that a recovery may take. 15 s is the promise for an idle machine.
const recoveryTime = time.Minute

// TestOutages puts three nats-servers that `hubcloud broker-config` configured, two replicas and a
// database through outages that test/sim does not have: databases that are stopped and killed,
// servers that lose their disk and are damaged, replicas that are killed as processes. Meanwhile
// hubs send events and run commands, readers and a tap read, and clients create sites. What was
// acknowledged is stored once and in order, every reader gets all of it, the tap each event once,
// no valid cursor is rejected, every created site persists, no command runs twice, and the cluster
// recovers from each outage by itself.
func TestOutages(t *testing.T) {
	t.Parallel()
	o := newOutages(t)
	o.acrossServers()
	o.renewCertificate()
	o.traffic = newTraffic(t, o.broker, o.replicas[0], 3, o.clients, o.tenant)
	tap := startTap(t, t.TempDir(), "outages", o.broker.Access...)
	o.awaitHealthy("at the start")
	for range *rounds {
		for _, outage := range []outage{
			o.stopPostgres(), o.killPostgres(), o.killReplica(), o.wipe(), o.damageViews(),
		} {
			o.run(outage)
		}
	}
	o.traffic.end()
	o.checkTap(tap)
}

// checkTap checks that a tap that was never started again has written every event once.
func (o *outages) checkTap(tap *tapProcess) {
	o.t.Helper()
	for _, h := range o.traffic.hubs {
		id := h.hub.ID
		stored := o.tenant.AllEvents(id, "")
		streamstest.Eventually(o.t, "the tap has the events of "+id, func() bool {
			return len(tap.lines(0)[id]) >= len(stored)
		})
		sameTapped(o.t, id, tap.lines(0)[id], stored, 0, o.tenant.Org)
	}
	tap.end()
}

// outages is the cluster under test, with its traffic.
type outages struct {
	t        *testing.T
	broker   *natscluster.Cluster
	replicas []*harness.Service
	postgres *postgresServer
	clients  []*harness.Client
	tenant   *harness.Tenant
	traffic  *traffic
}

// outage is one temporary fault.
type outage struct {
	name       string
	lasts      time.Duration
	begin, end func()
}

func newOutages(t *testing.T) *outages {
	t.Helper()
	o := &outages{t: t, postgres: newPostgres(t)}
	hosts := []string{"127.0.1.2", "127.0.1.3", "127.0.1.4"}
	o.broker = natscluster.New(t, "4", hosts, o.postgres.url())
	for range 2 {
		o.replicas = append(
			o.replicas, harness.Joining(t, o.broker.MQTT[0], o.broker.NATS, o.broker.Arguments...),
		)
	}
	o.startLate()
	o.tenant = harness.NewTenant(t, o.replicas[0], "Outages")
	o.tenant.Repeats = true
	for _, replica := range o.replicas {
		client := harness.NewClient(t, replica.Base(), o.tenant.Key)
		client.Repeats = true
		o.clients = append(o.clients, client)
	}
	return o
}

// startLate starts all replicas of a new installation before the brokers and the database. A
// regression: they exited, with "no server available", a missing stream, or a timeout of the
// outbox.
func (o *outages) startLate() {
	o.t.Helper()
	for _, replica := range o.replicas {
		replica.Launch()
	}
	for _, replica := range o.replicas {
		o.awaitLine(replica, `msg=waiting for="the broker"`)
	}
	o.broker.Start()
	for _, replica := range o.replicas {
		o.awaitLine(replica, `database not reached`)
	}
	o.postgres.start()
	for i, replica := range o.replicas {
		replica.AwaitReady()
		if lines := strings.Count(replica.Log(), "msg=waiting"); lines > 30 {
			o.t.Errorf("replica %d: got %d log lines with msg=waiting, want at most 30", i, lines)
		}
	}
}

// awaitLine waits until a replica has logged text. The replica must not exit.
func (o *outages) awaitLine(replica *harness.Service, text string) {
	o.t.Helper()
	streamstest.Eventually(o.t, "a replica logs "+text, func() bool {
		select {
		case <-replica.Ended():
			o.t.Fatalf("a replica exited instead of waiting:\n%s", replica.Log())
		default:
		}
		return strings.Contains(replica.Log(), text)
	})
}

// acrossServers connects a hub to each server, and lets every replica send it requests and
// disconnect it.
func (o *outages) acrossServers() {
	t := o.t
	t.Helper()
	for _, address := range o.broker.MQTT {
		hub := adopted(t, o.replicas[0], o.tenant)
		hub.Disconnect()
		hub.Through(address)
		hub.OnRequest(func(harness.Request) harness.Response {
			return harness.Response{Result: map[string]any{"devices": []any{}}}
		})
		hub.GoOnline()
		for _, client := range o.clients {
			streamstest.Eventually(t, "the hub at "+address+" is asked", func() bool {
				answer, err := client.Try(http.MethodGet, "/hubs/"+hub.ID+"/devices", nil)
				return err == nil && answer.Status == http.StatusOK
			})
		}
		o.clients[1].Must(
			http.MethodPost, "/hubs/"+hub.ID+"/reset-link", nil, http.StatusNoContent,
		)
		select {
		case <-hub.Lost:
		case <-time.After(time.Minute):
			t.Errorf("hub at %s: still connected after its link was reset", address)
		}
		if err := hub.TryConnect(hub.ID); err == nil {
			t.Errorf("hub at %s: connected although its link was reset", address)
		}
	}
}

// renewCertificate replaces the certificate of a running server.
func (o *outages) renewCertificate() {
	o.t.Helper()
	before := servedCertificate(o.broker.MQTT[0])
	o.broker.Renew()
	o.broker.Nodes[0].Reload()
	streamstest.Eventually(o.t, "the server presents another certificate", func() bool {
		after := servedCertificate(o.broker.MQTT[0])
		return len(after) > 0 && !bytes.Equal(after, before)
	})
}

// servedCertificate returns the certificate that a server presents, or nil.
func servedCertificate(address string) (raw []byte) {
	conn, err := tls.Dial("tcp", address, &tls.Config{
		InsecureSkipVerify: true, // the certificate is only read
		VerifyPeerCertificate: func(certificates [][]byte, _ [][]*x509.Certificate) error {
			raw = certificates[0]
			return nil
		},
	})
	if err == nil {
		_ = conn.Close() // nothing was sent
	}
	return raw
}

// stopPostgres stops the database's processes for a time.
func (o *outages) stopPostgres() outage {
	return outage{
		name: "the database is stopped", lasts: 4 * time.Second,
		begin: func() { o.postgres.signal(syscall.SIGSTOP) },
		end:   func() { o.postgres.signal(syscall.SIGCONT) },
	}
}

// killPostgres kills the database and restarts it.
func (o *outages) killPostgres() outage {
	return outage{
		name: "the database is killed", lasts: 2 * time.Second,
		begin: o.postgres.kill, end: o.postgres.start,
	}
}

// killReplica kills a replica and restarts it.
func (o *outages) killReplica() outage {
	return outage{
		name: "a replica is killed", lasts: 2 * time.Second,
		begin: o.replicas[1].Kill, end: o.replicas[1].Begin,
	}
}

// wipe kills a server and restarts it with an empty disk. Meanwhile an organization gets a hub, which
// reports: two of three servers are enough to create its log.
func (o *outages) wipe() outage {
	n := o.broker.Nodes[2]
	hub := harness.NewRawHub(o.t, o.replicas[0])
	hub.Enroll()
	hub.GoOnline()
	hub.Disconnect()
	return outage{
		name: "a broker loses its disk, and a hub is added",
		begin: func() {
			n.Kill()
			o.add(hub)
		},
		end: func() {
			if err := os.RemoveAll(n.Store); err != nil {
				o.t.Error(err)
			}
			n.Start()
		},
	}
}

// add adds a hub to the organization, at a replica that answers, and has the hub report.
func (o *outages) add(hub *harness.RawHub) {
	o.t.Helper()
	body := map[string]string{"serial": hub.Serial, "site_id": o.tenant.Site}
	streamstest.Eventually(o.t, "a hub is added", func() bool {
		for _, client := range o.clients {
			answer, err := client.Try(http.MethodPost, "/hubs", body)
			if err == nil && answer.Status == http.StatusOK {
				return true
			}
		}
		return false
	})
	stop := make(chan struct{})
	timeout := time.AfterFunc(recoveryTime, func() { close(stop) })
	defer timeout.Stop()
	h := sender{hub: hub, pace: 100 * time.Millisecond, limit: 20}
	if h.run(stop); h.acked != h.limit {
		o.t.Errorf("hub added without a server: %d of %d events acknowledged", h.acked, h.limit)
	}
}

// viewServer returns the number of the server that has the log of a hub: its view of the journal
// has one copy.
func (o *outages) viewServer(hub string) int {
	o.t.Helper()
	server := -1
	streamstest.Eventually(o.t, "a server has the log of "+hub, func() bool {
		for i, node := range o.broker.Nodes {
			folders, err := filepath.Glob(filepath.Join(
				node.Store, "jetstream", "*", "streams", streams.HubStream(domain.HubID(hub)), "msgs",
			))
			if err == nil && len(folders) > 0 {
				server = i
			}
		}
		return server >= 0
	})
	return server
}

// damageViews kills the server that has the log of the first hub, damages every hub log that it
// has, and restarts it.
func (o *outages) damageViews() outage {
	var n *natscluster.Node
	return outage{
		name: "hub logs of a broker are damaged while it is stopped", lasts: 2 * time.Second,
		begin: func() {
			n = o.broker.Nodes[o.viewServer(o.traffic.hubs[0].hub.ID)]
			n.Kill()
			for _, h := range o.traffic.hubs {
				damageView(o.t, filepath.Join(n.Store, "jetstream"), h.hub.ID, -1)
			}
		},
		end: func() { n.Start() },
	}
}

// run starts an outage, ends it, and waits until everything works again.
func (o *outages) run(what outage) {
	o.t.Helper()
	o.t.Logf("%s %s, for %s", time.Now().Format("15:04:05.000"), what.name, what.lasts)
	what.begin()
	harness.Elapse(what.lasts)
	what.end()
	o.awaitHealthy("after " + what.name)
}

// awaitHealthy waits until the brokers are healthy, and then until every replica is ready and every
// hub's events are stored.
func (o *outages) awaitHealthy(when string) {
	o.t.Helper()
	began := time.Now()
	for _, node := range o.broker.Nodes {
		streamstest.EventuallyWithin(
			o.t, 2*time.Minute, node.Name+" is healthy "+when, node.Healthy,
		)
	}
	brokers := time.Now()
	for i, replica := range o.replicas {
		var last string
		if !streamstest.Poll(recoveryTime-time.Since(brokers), func() bool {
			last = notReady(replica)
			return last == ""
		}) {
			o.t.Fatalf(
				"%s: replica %d is not ready %s after the brokers were healthy: %s", when, i,
				recoveryTime, last,
			)
		}
	}
	replicas := time.Now()
	for _, h := range o.traffic.hubs {
		before := h.progress.Load()
		if !streamstest.Poll(recoveryTime-time.Since(brokers), func() bool {
			return h.progress.Load() != before
		}) {
			o.t.Fatalf(
				"%s: hub %s: no ack %s after the brokers were healthy", when, h.hub.ID,
				recoveryTime,
			)
		}
	}
	o.t.Logf(
		"%s %s: brokers healthy after %s, replicas ready %s later, every hub acknowledged %s later",
		time.Now().Format("15:04:05.000"), when, brokers.Sub(began).Round(time.Millisecond),
		replicas.Sub(brokers).Round(time.Millisecond),
		time.Since(replicas).Round(time.Millisecond),
	)
}

// notReady returns what a replica reports as unhealthy, or "" when it is ready.
func notReady(replica *harness.Service) string {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(replica.Public() + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprint(answer.StatusCode, " ", string(text))
	}
	return ""
}
