package faults

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
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

var (
	rounds = flag.Int(
		"faults.rounds",
		1,
		"rounds of outages; every round after the first has "+
			"other targets and durations",
	)
	seed = flag.Uint64("faults.seed", 1, "seed of the targets and durations of outages")
	// recoveryTime is longer on a busy machine.
	recoveryTime = flag.Duration(
		"faults.recovery",
		time.Minute,
		"maximum time to recover from an outage; 15s "+
			"is the promise for an idle machine",
	)
)

// TestOutages puts three nats-servers, three replicas and a database, each in its own network
// namespace, through outages: processes that are stopped and continued, networks that drop
// everything between two places, servers that lose their disk, databases that are killed. Meanwhile
// hubs send events and run commands, readers read, and clients create sites. What was acknowledged
// is stored once and in order, every reader gets all of it, no valid cursor is rejected, every
// created site persists, no command runs twice, and the cluster recovers from each outage by
// itself.
func TestOutages(t *testing.T) {
	t.Parallel()
	o := newOutages(t)
	o.traffic = newTraffic(t, o.broker, o.replicas[0], 3, o.clients, o.tenant)
	o.awaitHealthy("at the start", *recoveryTime)
	random := rand.New(rand.NewPCG(*seed, 0))
	for round := range *rounds {
		for _, outage := range o.outages(round, random) {
			o.run(outage)
		}
	}
	o.traffic.end()
}

// outages is the cluster under test, with its traffic.
type outages struct {
	t        *testing.T
	net      *network // nil without namespaces; then no network is cut
	broker   *natscluster.Cluster
	nodes    []*namespace
	machines []*namespace
	replicas []*harness.Service
	postgres *postgresServer
	database *namespace
	clients  []*harness.Client
	tenant   *harness.Tenant
	traffic  *traffic
}

// outage is one temporary fault.
type outage struct {
	name       string
	lasts      time.Duration
	begin, end func()
	// routes is set if brokers cannot reach each other during the outage.
	routes bool
}

func newOutages(t *testing.T) *outages {
	t.Helper()
	o := &outages{t: t, net: newNetwork(t)}
	brokers, services := make([]harness.Place, 3), make([]harness.Place, 3)
	database := harness.Place{Address: "127.0.0.1"}
	if o.net != nil {
		if probe := o.net.place("probe"); !o.net.reached(probe) {
			t.Log("NO SEPARATE NETWORK: packets do not pass over the bridge")
			o.net = nil
		}
	}
	for i := range 3 {
		brokers[i].Address = fmt.Sprintf("127.0.1.%d", i+2)
		if o.net == nil {
			continue
		}
		node, machine := o.net.place("broker"), o.net.place("replica")
		o.nodes, o.machines = append(o.nodes, node), append(o.machines, machine)
		brokers[i], services[i] = node.Place, machine.Place
	}
	if o.net == nil {
		t.Log("NOT TRIED: partitions; processes are only stopped and killed")
	} else {
		o.database = o.net.place("database")
		database = o.database.Place
	}
	o.postgres = newPostgres(t, database)
	o.broker = natscluster.New(t, "4", brokers, o.postgres.url())
	for i := range 3 {
		o.replicas = append(
			o.replicas,
			harness.Joining(t, services[i], o.broker.MQTT[0], o.broker.NATS, o.broker.Arguments...),
		)
	}
	o.startLate()
	o.tenant = harness.NewTenant(t, o.replicas[0], "Outages")
	for _, replica := range o.replicas {
		o.clients = append(o.clients, harness.NewClient(t, replica.Base(), o.tenant.Key))
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

// lateAck is how long after a partition of brokers an old ack may still arrive.
const lateAck = 20 * time.Second

// leaseTime is longer than a shard's lease. Longer outages lose their leases.
const leaseTime = 11 * time.Second

// outages returns the faults of a round: in the first round one of each kind with short durations,
// later other targets and durations.
func (o *outages) outages(round int, random *rand.Rand) []outage {
	lasts := func(least time.Duration) time.Duration {
		if round == 0 {
			return least
		}
		return least + time.Duration(random.Int64N(int64(3*least)))
	}
	leader := o.leader("KV_leases")
	follower := (leader + 1 + random.IntN(2)) % 3
	node, replica := random.IntN(3), random.IntN(3)
	all := []outage{
		o.stopNode("the broker that leads the leases", leader, lasts(leaseTime)),
		o.stopReplica(replica, lasts(leaseTime)),
		o.stopPostgres(lasts(4 * time.Second)),
		o.killPostgres(lasts(2 * time.Second)),
		o.wipe(follower, lasts(2*time.Second)),
		o.damageViews(lasts(2 * time.Second)),
		o.slowViews(lasts(5 * time.Second)),
	}
	if o.net != nil {
		all = append(
			all,
			o.isolate("a broker", o.nodes[node], lasts(leaseTime)),
			o.cutBrokers(o.nodes[follower], o.nodes[leader], lasts(4*time.Second)),
			o.cut(
				"a replica and a broker", [][2]*namespace{{o.machines[replica], o.nodes[node]}},
				lasts(3*time.Second),
			),
			o.cutOff(replica, lasts(7*time.Second)),
			o.cut(
				"a replica and the database", [][2]*namespace{{o.machines[replica], o.database}},
				lasts(6*time.Second),
			),
		)
	}
	if round > 0 {
		all = append(all, o.stopNode("a broker that follows", follower, lasts(6*time.Second)))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	return all
}

// run starts an outage, ends it, and waits until everything works again.
func (o *outages) run(what outage) {
	o.t.Helper()
	o.t.Logf(
		"%s %s, for %s", time.Now().Format("15:04:05.000"), what.name,
		what.lasts.Round(time.Millisecond),
	)
	began := time.Now()
	what.begin()
	harness.Elapse(what.lasts)
	what.end()
	o.awaitHealthy("after "+what.name, *recoveryTime)
	if what.routes {
		o.traffic.routesCut = append(o.traffic.routesCut, period{began, time.Now().Add(lateAck)})
	}
}

// awaitHealthy waits until the brokers are healthy, and then until every replica is ready and every
// hub's events are stored and read.
func (o *outages) awaitHealthy(when string, within time.Duration) {
	o.t.Helper()
	began := time.Now()
	for _, node := range o.broker.Nodes {
		streamstest.EventuallyWithin(
			o.t, 2*time.Minute, node.Name+" is healthy "+when, node.Healthy,
		)
	}
	brokers := time.Now()
	var last string
	if !streamstest.Poll(within, func() bool {
		for i, replica := range o.replicas {
			if last = notReady(replica); last != "" {
				last = fmt.Sprintf("replica %d: %s", i, last)
				return false
			}
		}
		return true
	}) {
		o.t.Fatalf("%s: not ready %s after the brokers were healthy: %s", when, within, last)
	}
	replicas := time.Now()
	if o.traffic != nil {
		for _, h := range o.traffic.hubs {
			before := h.progress.Load()
			if !streamstest.Poll(within-time.Since(brokers), func() bool {
				return h.progress.Load() != before
			}) {
				o.t.Fatalf(
					"%s: hub %s: no ack %s after the brokers were healthy", when, h.hub.ID,
					within,
				)
			}
		}
	}
	o.t.Logf(
		"%s %s: brokers healthy after %s, replicas ready %s later, every hub acknowledged %s later",
		time.Now().Format("15:04:05.000"),
		when,
		brokers.Sub(began).
			Round(time.Millisecond),
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

// stopNode stops a server's process (SIGSTOP) for a time.
func (o *outages) stopNode(what string, node int, lasts time.Duration) outage {
	n := o.broker.Nodes[node]
	return outage{
		name: fmt.Sprintf("%s is stopped (%s)", what, n.Name), lasts: lasts, routes: true,
		begin: func() { n.Signal(syscall.SIGSTOP) }, end: func() { n.Signal(syscall.SIGCONT) },
	}
}

// stopReplica stops a replica's process for a time.
func (o *outages) stopReplica(replica int, lasts time.Duration) outage {
	return outage{
		name: fmt.Sprintf("replica %d is stopped", replica), lasts: lasts,
		begin: func() { o.replicas[replica].Signal(syscall.SIGSTOP) },
		end:   func() { o.replicas[replica].Signal(syscall.SIGCONT) },
	}
}

// stopPostgres stops the database's processes for a time.
func (o *outages) stopPostgres(lasts time.Duration) outage {
	return outage{
		name: "the database is stopped", lasts: lasts,
		begin: func() { o.postgres.signal(syscall.SIGSTOP) },
		end:   func() { o.postgres.signal(syscall.SIGCONT) },
	}
}

// killPostgres kills the database and restarts it.
func (o *outages) killPostgres(lasts time.Duration) outage {
	return outage{
		name:  "the database is killed",
		lasts: lasts,
		begin: o.postgres.kill,
		end:   o.postgres.start,
	}
}

// wipe kills a server and restarts it with an empty disk.
func (o *outages) wipe(node int, lasts time.Duration) outage {
	n := o.broker.Nodes[node]
	return outage{
		name:  fmt.Sprintf("a broker loses its disk (%s)", n.Name),
		lasts: lasts,
		begin: n.Kill,
		end: func() {
			if err := os.RemoveAll(n.Store); err != nil {
				o.t.Error(err)
			}
			n.Start()
		},
	}
}

// viewServer returns the number of the server that has the log of a hub: its view of the journal has
// one copy.
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

// damageViews kills the server that has the log of the first hub, damages every hub log that it has,
// and restarts it.
func (o *outages) damageViews(lasts time.Duration) outage {
	var n *natscluster.Node
	return outage{
		name:  "hub logs of a broker are damaged while it is stopped",
		lasts: lasts, routes: true,
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

// slowViews stops the server that has the log of the first hub again and again for most of the time.
func (o *outages) slowViews(lasts time.Duration) outage {
	stop, stopped := make(chan struct{}), make(chan struct{})
	return outage{
		name:  "a broker that has hub logs is slow",
		lasts: lasts, routes: true,
		begin: func() {
			n := o.broker.Nodes[o.viewServer(o.traffic.hubs[0].hub.ID)]
			go func() {
				defer close(stopped)
				for !isClosed(stop) {
					n.Signal(syscall.SIGSTOP)
					pause(stop, 400*time.Millisecond)
					n.Signal(syscall.SIGCONT)
					pause(stop, 50*time.Millisecond)
				}
			}()
		},
		end: func() {
			close(stop)
			<-stopped
		},
	}
}

// isolate cuts a place from all others.
func (o *outages) isolate(what string, place *namespace, lasts time.Duration) outage {
	var pairs [][2]*namespace
	for _, other := range append(append([]*namespace{o.database}, o.nodes...), o.machines...) {
		if other != place {
			pairs = append(pairs, [2]*namespace{place, other})
		}
	}
	isolated := o.cut(what+" and all others", pairs, lasts)
	isolated.routes = true
	return isolated
}

// cutBrokers cuts two brokers from each other.
func (o *outages) cutBrokers(a, b *namespace, lasts time.Duration) outage {
	cut := o.cut("two brokers", [][2]*namespace{{a, b}}, lasts)
	cut.routes = true
	return cut
}

// cutOff cuts a replica from every broker. The replica must end its streams, so that their readers
// reconnect elsewhere.
func (o *outages) cutOff(replica int, lasts time.Duration) outage {
	var pairs [][2]*namespace
	for _, node := range o.nodes {
		pairs = append(pairs, [2]*namespace{o.machines[replica], node})
	}
	cut := o.cut("a replica and every broker", pairs, lasts)
	begin := cut.begin
	cut.begin = func() {
		hub := o.traffic.hubs[0].hub.ID
		stream := harness.OpenStream(o.t, o.clients[replica], hub, o.tenant.Head(hub))
		begin()
		began := time.Now()
		select {
		case <-stream.Ended:
			o.t.Logf(
				"the replica ended a stream %s after it was cut off",
				time.Since(began).Round(time.Millisecond),
			)
		case <-time.After(streamEnd):
			o.t.Errorf("stream of a cut-off replica: still open after %s", streamEnd)
		}
		stream.Close()
	}
	return cut
}

// streamEnd is how long a stream may stay open on a replica without a broker. The promise for an
// idle machine is three seconds.
const streamEnd = 30 * time.Second

// cut cuts pairs of places from each other.
func (o *outages) cut(what string, pairs [][2]*namespace, lasts time.Duration) outage {
	var names []string
	for _, pair := range pairs {
		names = append(names, pair[0].Address+"-"+pair[1].Address)
	}
	return outage{
		name: fmt.Sprintf(
			"the network between %s is cut (%s)", what, strings.Join(names, ", "),
		), lasts: lasts,
		begin: func() {
			for _, pair := range pairs {
				o.net.cut(pair[0], pair[1])
			}
		},
		end: func() {
			for _, pair := range pairs {
				o.net.mend(pair[0], pair[1])
			}
		},
	}
}

// leader returns the number of the server that leads a stream of the account CLOUD.
func (o *outages) leader(stream string) int {
	o.t.Helper()
	leader := -1
	streamstest.Eventually(o.t, stream+" has a leader", func() bool {
		var answer struct {
			Accounts []struct {
				Streams []struct {
					Name    string
					Cluster struct{ Leader string }
				} `json:"stream_detail"`
			} `json:"account_details"`
		}
		if !o.broker.Nodes[0].Get("/jsz?acc=CLOUD&streams=true", &answer) {
			return false
		}
		for _, account := range answer.Accounts {
			for _, s := range account.Streams {
				if _, err := fmt.Sscanf(s.Cluster.Leader, "node-%d", &leader); err == nil &&
					s.Name == stream {
					return true
				}
			}
		}
		return false
	})
	return leader
}
