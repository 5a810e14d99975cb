package faults

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

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
// hubs send events and run commands, readers and a tap read, and clients create sites. What was
// acknowledged is stored once and in order, every reader gets all of it, the tap each event once,
// no valid cursor is rejected, every created site persists, no command runs twice, and the cluster
// recovers from each outage by itself.
func TestOutages(t *testing.T) {
	t.Parallel()
	o := newOutages(t)
	o.traffic = newTraffic(t, o.broker, o.replicas[0], 3, o.clients, o.tenant)
	tap := startTap(t, t.TempDir(), "outages", o.broker.Access...)
	o.awaitHealthy("at the start", *recoveryTime)
	random := rand.New(rand.NewPCG(*seed, 0))
	for round := range *rounds {
		for _, outage := range o.outages(round, random) {
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
	// canFill reports whether the server smallDisk has a small disk.
	canFill bool
}

// smallDisk is the number of the server with a disk that can be filled.
const smallDisk = 0

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
	store := o.broker.Nodes[smallDisk].Store
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := streamstest.MountSmallDisk(t, store, diskSize); err != nil {
		t.Logf("NOT TRIED: a full disk of a broker; a small disk cannot be mounted: %v", err)
	} else {
		o.canFill = true
	}
	for i := range 3 {
		o.replicas = append(
			o.replicas,
			harness.Joining(t, services[i], o.broker.MQTT[0], o.broker.NATS, o.broker.Arguments...),
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

// lateAck is how long after a partition of brokers an old ack may still arrive.
const lateAck = 20 * time.Second

// leaseTime is longer than a shard's lease. Longer outages lose their leases.
const leaseTime = 11 * time.Second

// outages returns the faults of a round: in the first round one of each kind with short durations,
// apart from those that test/sim has with the same checks, later all, with other targets and
// durations.
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
		o.stopPostgres(lasts(4 * time.Second)),
		o.killPostgres(lasts(2 * time.Second)),
		o.wipe(follower, lasts(2*time.Second)),
		o.damageViews(lasts(2 * time.Second)),
		o.slowViews(lasts(5 * time.Second)),
	}
	if o.canFill {
		all = append(all, o.fillDisk(lasts(leaseTime)))
	}
	if o.net != nil {
		all = append(
			all,
			o.cutOff(replica, lasts(7*time.Second)),
			o.cut(
				"a replica and the database", [][2]*namespace{{o.machines[replica], o.database}},
				lasts(6*time.Second),
			),
		)
	}
	if round > 0 && o.net != nil {
		all = append(
			all,
			o.isolate("a broker", o.nodes[node], lasts(leaseTime)),
			o.cutBrokers(o.nodes[follower], o.nodes[leader], lasts(4*time.Second)),
			o.cut(
				"a replica and a broker", [][2]*namespace{{o.machines[replica], o.nodes[node]}},
				lasts(3*time.Second),
			),
		)
	}
	if round > 0 {
		all = append(
			all,
			o.stopNode("the broker that leads the leases", leader, lasts(leaseTime)),
			o.stopNode("a broker that follows", follower, lasts(6*time.Second)),
			o.stopReplica(replica, lasts(leaseTime)),
		)
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
