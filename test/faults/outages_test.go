package faults

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
)

var (
	rounds = flag.Int(
		"faults.rounds",
		1,
		"how many rounds of outages a cluster is put through; every round after the first takes "+
			"other victims and other times",
	)
	seed = flag.Uint64("faults.seed", 1, "which victims and times the rounds of outages take")
	// A machine that is busy with something else takes longer for everything.
	patience = flag.Duration(
		"faults.patience",
		time.Minute,
		"how long after an outage everything may take to work again before the test fails; 15s "+
			"is what is promised of a machine with nothing else to do",
	)
)

// TestOutages puts three nats-servers, three replicas and a database, each on a network of its own,
// through what breaks in data centers: processes that stand still and go on, networks that lose
// everything between two of them, servers that lose their disk, databases that are killed. Hubs
// send and take commands all the while, readers read and people make sites. What was acknowledged
// is stored once and in order, every reader gets all of it and no cursor is refused, every site
// that was answered is there, no command is run twice, and after each outage everything works again
// by itself. -faults.rounds N is the long form.
func TestOutages(t *testing.T) {
	t.Parallel()
	o := newOutages(t)
	o.traffic = newTraffic(t, o.broker, o.replicas[0], 3, o.clients, o.tenant)
	o.awaitWell("at the start", *patience)
	random := rand.New(rand.NewPCG(*seed, 0))
	for round := range *rounds {
		for _, outage := range o.outages(round, random) {
			o.suffer(outage)
		}
	}
	o.traffic.end()
}

// outages is the cluster that suffers them.
type outages struct {
	t        *testing.T
	net      *network // nil where there is none: then no network is cut
	broker   *ownBroker
	nodes    []*namespace
	machines []*namespace
	replicas []*harness.Service
	postgres *postgresServer
	database *namespace
	clients  []*harness.Client
	tenant   *harness.Tenant
	traffic  *traffic
}

// outage is one thing that breaks, for a time.
type outage struct {
	name       string
	lasts      time.Duration
	begin, end func()
	// routes reports that brokers cannot reach each other meanwhile.
	routes bool
}

func newOutages(t *testing.T) *outages {
	t.Helper()
	o := &outages{t: t, net: newNetwork(t)}
	brokers, services, database := make([]harness.Place, 3), make([]harness.Place, 3), harness.Place{
		Address: "127.0.0.1",
	}
	if o.net != nil {
		if probe := o.net.place("probe"); !o.net.reached(probe) {
			t.Log("NO NETWORK OF ITS OWN: packets do not pass over the bridge")
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
		t.Log("PARTITIONS ARE LEFT OUT: only processes are stopped and killed")
	} else {
		o.database = o.net.place("database")
		database = o.database.Place
	}
	o.postgres = newPostgres(t, database)
	o.broker = newBrokerAt(t, "4", brokers, o.postgres.url())
	for i := range 3 {
		o.replicas = append(
			o.replicas,
			harness.Joining(t, services[i], o.broker.mqtt[0], o.broker.nats, o.broker.arguments...),
		)
	}
	o.startLate()
	o.tenant = harness.NewTenant(t, o.replicas[0], "Outages")
	for _, replica := range o.replicas {
		o.clients = append(o.clients, harness.NewClient(t, replica.Base(), o.tenant.Key))
	}
	return o
}

// startLate starts the replicas before anything that they need, and all at once on a new
// installation. They used to end, each for another reason: no server available, a stream that was
// not found, an outbox that did not answer in time.
func (o *outages) startLate() {
	o.t.Helper()
	for _, replica := range o.replicas {
		replica.Launch()
	}
	for _, replica := range o.replicas {
		o.awaitLine(replica, `msg=waiting for="the broker"`)
	}
	o.broker.start()
	for _, replica := range o.replicas {
		o.awaitLine(replica, `cannot reach the database`)
	}
	o.postgres.start()
	for i, replica := range o.replicas {
		replica.AwaitReady()
		if lines := strings.Count(replica.Log(), "msg=waiting"); lines > 30 {
			o.t.Errorf("replica %d said %d times that it waits", i, lines)
		}
	}
}

// awaitLine waits until a replica, which must not end, has logged something.
func (o *outages) awaitLine(replica *harness.Service, text string) {
	o.t.Helper()
	streamstest.Eventually(o.t, "a replica logs "+text, func() bool {
		select {
		case <-replica.Ended():
			o.t.Fatalf("a replica ended instead of waiting:\n%s", replica.Log())
		default:
		}
		return strings.Contains(replica.Log(), text)
	})
}

// lateAck is how long after brokers could reach each other again the system may still repeat what
// it could not send between them.
const lateAck = 20 * time.Second

// leaseTime is longer than a lease of a shard lasts: what breaks for so long loses its leases.
const leaseTime = 11 * time.Second

// outages lists what a round breaks: of each kind one victim in the first round, with times as
// short as they show something, and others later.
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

// suffer breaks something, mends it, and waits until everything works again.
func (o *outages) suffer(what outage) {
	o.t.Helper()
	o.t.Logf(
		"%s %s, for %s", time.Now().Format("15:04:05.000"), what.name,
		what.lasts.Round(time.Millisecond),
	)
	began := time.Now()
	what.begin()
	harness.Elapse(what.lasts)
	what.end()
	o.awaitWell("after "+what.name, *patience)
	if what.routes {
		o.traffic.routesCut = append(o.traffic.routesCut, period{began, time.Now().Add(lateAck)})
	}
}

// awaitWell waits until the brokers are well, and from then on until every replica is ready and
// every hub's events are stored and read.
func (o *outages) awaitWell(when string, within time.Duration) {
	o.t.Helper()
	began := time.Now()
	for _, node := range o.broker.nodes {
		streamstest.EventuallyWithin(o.t, 2*time.Minute, node.name+" is well "+when, node.well)
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
		o.t.Fatalf("%s: not ready %s after the brokers were well: %s", when, within, last)
	}
	replicas := time.Now()
	if o.traffic != nil {
		for _, h := range o.traffic.hubs {
			before := h.progress.Load()
			if !streamstest.Poll(within-time.Since(brokers), func() bool {
				return h.progress.Load() != before
			}) {
				o.t.Fatalf(
					"%s: hub %s is not acknowledged %s after the brokers were well", when, h.hub.ID,
					within,
				)
			}
		}
	}
	o.t.Logf(
		"%s %s: the brokers are well after %s, the replicas %s later, every hub is acknowledged %s later",
		time.Now().Format("15:04:05.000"),
		when,
		brokers.Sub(began).
			Round(time.Millisecond),
		replicas.Sub(brokers).Round(time.Millisecond),
		time.Since(replicas).Round(time.Millisecond),
	)
}

// notReady says what a replica lacks; empty when it is ready.
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

// stopNode has a server stand still.
func (o *outages) stopNode(what string, node int, lasts time.Duration) outage {
	n := o.broker.nodes[node]
	return outage{
		name: fmt.Sprintf("%s stands still (%s)", what, n.name), lasts: lasts, routes: true,
		begin: func() { n.signal(syscall.SIGSTOP) }, end: func() { n.signal(syscall.SIGCONT) },
	}
}

// stopReplica has a replica stand still.
func (o *outages) stopReplica(replica int, lasts time.Duration) outage {
	return outage{
		name: fmt.Sprintf("replica %d stands still", replica), lasts: lasts,
		begin: func() { o.replicas[replica].Signal(syscall.SIGSTOP) },
		end:   func() { o.replicas[replica].Signal(syscall.SIGCONT) },
	}
}

// stopPostgres has the database stand still.
func (o *outages) stopPostgres(lasts time.Duration) outage {
	return outage{
		name: "the database stands still", lasts: lasts,
		begin: func() { o.postgres.signal(syscall.SIGSTOP) },
		end:   func() { o.postgres.signal(syscall.SIGCONT) },
	}
}

// killPostgres kills the database, and starts it again.
func (o *outages) killPostgres(lasts time.Duration) outage {
	return outage{
		name:  "the database is killed",
		lasts: lasts,
		begin: o.postgres.kill,
		end:   o.postgres.start,
	}
}

// wipe kills a server, and starts it again without anything that it had stored.
func (o *outages) wipe(node int, lasts time.Duration) outage {
	n := o.broker.nodes[node]
	return outage{
		name:  fmt.Sprintf("a broker loses its disk (%s)", n.name),
		lasts: lasts,
		begin: n.kill,
		end: func() {
			if err := os.RemoveAll(n.store); err != nil {
				o.t.Error(err)
			}
			n.start()
		},
	}
}

// isolate cuts a place from every other.
func (o *outages) isolate(what string, place *namespace, lasts time.Duration) outage {
	var pairs [][2]*namespace
	for _, other := range append(append([]*namespace{o.database}, o.nodes...), o.machines...) {
		if other != place {
			pairs = append(pairs, [2]*namespace{place, other})
		}
	}
	isolated := o.cut(what+" and everybody", pairs, lasts)
	isolated.routes = true
	return isolated
}

// cutBrokers cuts two brokers from each other.
func (o *outages) cutBrokers(a, b *namespace, lasts time.Duration) outage {
	cut := o.cut("two brokers", [][2]*namespace{{a, b}}, lasts)
	cut.routes = true
	return cut
}

// cutOff cuts a replica from every broker. Its streams end, so that their readers go elsewhere.
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
				"a stream of the replica ended %s after it was cut off",
				time.Since(began).Round(time.Millisecond),
			)
		case <-time.After(streamEnd):
			o.t.Errorf("a stream of a replica that is cut off goes on after %s", streamEnd)
		}
		stream.Close()
	}
	return cut
}

// streamEnd is how long a stream may go on at a replica that has lost the broker: three seconds are
// promised of a machine with nothing else to do.
const streamEnd = 10 * time.Second

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

// leader is the number of the server that leads a stream of the account CLOUD.
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
		if !o.broker.nodes[0].ask("/jsz?acc=CLOUD&streams=true", &answer) {
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

// well says whether a server has everything that it should.
func (n *natsNode) well() bool {
	var answer struct{ Status string }
	return n.ask("/healthz", &answer) && answer.Status == "ok"
}

// ask asks a server's monitoring.
func (n *natsNode) ask(path string, into any) bool {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(n.monitor + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	return answer.StatusCode == http.StatusOK && json.NewDecoder(answer.Body).Decode(into) == nil
}
