package bench

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// clusterService is two replicas of the service on a cluster of three servers, with three copies.
type clusterService struct {
	*natscluster.Cluster
	service // the first replica
	second  *harness.Service
	hosts   []string // of the servers
}

func startCluster(b *bench) *clusterService {
	b.Helper()
	c := &clusterService{Cluster: natscluster.StartOnLoopback(b, "0")}
	c.Arguments = append(
		c.Arguments, "--rate", "1000000", "--burst", "1000000", "--log-level", "warn",
	)
	c.t, c.Service, c.second = b, c.Join(), c.Join()
	c.Tenant = harness.NewTenant(b, c.Service, "Bench")
	c.process = process{pid: c.Service.PID(), admin: c.Service.Admin}
	for _, address := range c.Cluster.MQTT {
		host, _, err := net.SplitHostPort(address)
		harness.Must(b, err)
		c.hosts = append(c.hosts, host)
	}
	return c
}

// makeHubs creates hubs, divided among the servers, which each have an event and are not connected.
func (c *clusterService) makeHubs(count int) []*hub {
	c.t.Helper()
	const some = 500 // connected at a time
	var all []*hub
	for len(all) < count {
		hubs := c.register(min(some, count-len(all)))
		c.each(hubs, c.enrol)
		for i, h := range hubs {
			h.broker = c.Cluster.MQTT[i%len(c.hosts)]
			h.tls.ServerName = c.hosts[i%len(c.hosts)]
		}
		c.online(hubs)
		c.each(hubs, c.adopt)
		c.each(hubs, func(h *hub) error { return h.emit(1, 1) })
		c.each(hubs, func(h *hub) error { h.disconnect(); return nil })
		all = append(all, hubs...)
	}
	return all
}

// online connects hubs, each of which tries again for two minutes, as a real one does: servers that
// create the streams of many hubs can be late.
func (c *clusterService) online(hubs []*hub) {
	c.t.Helper()
	c.each(hubs, func(h *hub) (err error) {
		streamstest.Poll(2*time.Minute, func() bool {
			if err = h.connect(); err != nil {
				return false
			}
			if err = h.hello(); err != nil {
				h.conn.Close()
			}
			return err == nil
		})
		return err
	})
}

// stay keeps the connections of hubs alive until the returned function is called, which disconnects
// them.
func (c *clusterService) stay(hubs []*hub) (disconnect func()) {
	c.t.Helper()
	stop := make(chan struct{})
	var group errgroup.Group
	for _, h := range hubs {
		group.Go(func() error { return h.stay(stop) })
	}
	return func() {
		c.t.Helper()
		close(stop)
		harness.Must(c.t, group.Wait())
	}
}

// idle returns the CPU that each server uses for a time, as a part of one processor, and the memory
// of each in bytes.
func (c *clusterService) idle(b *bench, during time.Duration) (cpu, memory []float64) {
	b.Helper()
	before := make([]time.Duration, len(c.Nodes))
	for i, node := range c.Nodes {
		before[i] = process{pid: node.PID()}.cpu(b)
	}
	began := time.Now()
	harness.Elapse(during)
	took := time.Since(began)
	for i, node := range c.Nodes {
		used := process{pid: node.PID()}.cpu(b) - before[i]
		cpu = append(cpu, float64(used)/float64(took))
	}
	for _, node := range c.Nodes {
		memory = append(memory, b.memory(process{pid: node.PID(), admin: node.Profiler}))
	}
	return cpu, memory
}

// profile profiles all servers and replicas, as bench.profile does one process.
func (c *clusterService) profile(
	b *bench, name string, during time.Duration, now bool,
) (done func()) {
	b.Helper()
	all := []process{c.process, {pid: c.second.PID(), admin: c.second.Admin}}
	for _, node := range c.Nodes {
		all = append(all, process{pid: node.PID(), admin: node.Profiler})
	}
	var ends []func()
	for i, p := range all {
		b.heap(p, fmt.Sprint(name, " ", i))
		ends = append(ends, b.profile(p, fmt.Sprint(name, " ", i), during, now))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// awaitHealthy waits until every server has caught up and the replicas are ready, and returns how
// long that took.
func (c *clusterService) awaitHealthy(b *bench) time.Duration {
	b.Helper()
	began := time.Now()
	for _, node := range c.Nodes {
		streamstest.EventuallyWithin(b, 5*time.Minute, node.Name+" is healthy", node.Healthy)
	}
	for _, replica := range []*harness.Service{c.Service, c.second} {
		streamstest.EventuallyWithin(b, 5*time.Minute, "a replica is ready", func() bool {
			answer, err := c.Tenant.HTTP.Get(replica.Public() + "/readyz")
			return err == nil && answer.Body.Close() == nil && answer.StatusCode == 200
		})
	}
	return time.Since(began)
}

type clusterSize struct {
	hubs, connected int
	rounds          int
	during          time.Duration
	// settle is the time until the work of connecting is done.
	settle time.Duration
}

// measureCluster measures three servers with three copies: idle, and with hubs that each have one
// event in flight. The limits are fixed figures.
func measureCluster(b *bench) {
	n := size(
		b, clusterSize{2000, 2000, 3, 5 * time.Second, 30 * time.Second},
		clusterSize{4, 4, 1, 100 * time.Millisecond, 0},
	)
	c := startCluster(b)
	hubs := c.makeHubs(n.hubs)
	c.online(hubs)
	cpu := row{Measure: "cluster, idle server", Unit: "% of a core"}
	memory := row{Measure: "cluster, memory of an idle server", Unit: "MB"}
	rate := row{Measure: "cluster, single events", Unit: "events/s"}
	beside := row{
		Measure: "cluster, single events beside bare servers", Unit: "events/s", Aim: atLeast(0.5),
		Note: "the limit is three NATS servers with MQTT, TLS and QoS 1, and one stream with three " +
			"copies that are synced every two minutes only",
	}
	bare := b.bareCluster(n.hubs)
	harness.Elapse(n.settle)
	stop := c.profile(b, "cluster idle", 4*n.during, true)
	used, resident := c.idle(b, 4*n.during)
	stop()
	cpu.Values = append(cpu.Values, 100*slices.Max(used))
	memory.Values = append(memory.Values, slices.Max(resident)/1e6)
	from := senders{process: c.process, hubs: hubs}
	var p50, p99 []float64
	for round := range n.rounds {
		done := c.profile(b, "cluster", n.during, round == 0)
		l := from.oneInFlight(b, hubs, n.during)
		done()
		rate.Values = append(rate.Values, l.rate)
		beside.Limits = append(beside.Limits, bare.oneInFlight(b, bare.hubs, n.during).rate)
		p50 = append(p50, median(l.latencies)/1e6)
		p99 = append(p99, percentile(l.latencies, 0.99)/1e6)
	}
	rate, cpu = rate.against(10_000, atLeast(1)), cpu.against(4, atMost(1))
	rate.Note = fmt.Sprintf(
		"%d hubs with one event in flight each, two replicas, everything on one machine; until "+
			"the ack p50 %s ms, p99 %s ms", n.hubs, figure(median(p50)), figure(median(p99)),
	)
	beside.Values = rate.Values
	b.report.add(rate, beside, cpu, memory.against(100, atMost(1)))
}

// bareCluster starts three bare brokers as anybody could set them up, and connects hubs to them.
func (b *bench) bareCluster(count int) senders {
	b.Helper()
	ca := newAuthority(b)
	config := bareBrokerConfig{Shards: 1, Unsynced: true}
	for range 3 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		harness.Must(b, err)
		config.Cluster = append(config.Cluster, listener.Addr().String())
		listener.Close()
	}
	var servers []*bare
	for config.Member = range config.Cluster {
		config.Dir = b.TempDir()
		servers = append(servers, ca.startBroker(config))
	}
	servers[0].do("/one-stream", oneStreamCommand{Copies: 3}, nil)
	all := senders{process: servers[0].process, hubs: ca.hubs(servers[0], 1, count)}
	for i, h := range all.hubs {
		h.broker, h.confirmed = servers[i%3].ready.MQTT, true
		harness.Must(b, h.connect())
	}
	return all
}

// measureLargeCluster measures three servers with the logs of many hubs, of which few are
// connected: their start, the loss of one, and their idle use.
func measureLargeCluster(b *bench) {
	n := size(
		b, clusterSize{*largeFlag, min(2000, *largeFlag), 1, 5 * time.Second, 3 * time.Minute},
		clusterSize{4, 2, 1, 100 * time.Millisecond, 0},
	)
	c := startCluster(b)
	hubs := c.makeHubs(n.hubs)
	c.Service.Stop()
	c.second.Stop()
	for _, node := range c.Nodes {
		node.Kill()
	}
	began := time.Now()
	c.Cluster.Start()
	c.Service.Begin()
	c.second.Begin()
	c.process.pid = c.Service.PID()
	c.awaitHealthy(b)
	start := row{
		Measure: "large cluster, start", Unit: "s", Values: []float64{time.Since(began).Seconds()},
	}
	connected := hubs[:n.connected]
	c.online(connected)
	disconnect := c.stay(connected)
	harness.Elapse(n.settle)
	used, resident := c.idle(b, 4*n.during)
	disconnect()

	c.Nodes[2].Kill()
	c.Nodes[2].Start()
	back := row{
		Measure: "large cluster, a killed server is back", Unit: "s",
		Values: []float64{c.awaitHealthy(b).Seconds()},
	}
	c.online(connected)
	c.each(connected, func(h *hub) error { return h.emit(1, 1) })

	cpu := row{
		Measure: "large cluster, idle server", Unit: "% of a core",
		Values: []float64{100 * slices.Max(used)},
	}
	cpu = cpu.against(5, atMost(1))
	var sizes []string
	for i, node := range c.Nodes {
		files := process{pid: node.PID()}.files(b)
		sizes = append(sizes, fmt.Sprintf("%s MB and %d files", figure(resident[i]/1e6), files))
	}
	cpu.Note = fmt.Sprintf(
		"%d hub logs, %d hubs connected; the servers have %s", n.hubs, n.connected,
		strings.Join(sizes, ", "),
	)
	b.report.add(
		cpu, start.against(largeStart, atMost(1)), back.against(largeStart, atMost(1)),
	)
}

// largeStart is the time, in seconds, in which a large cluster has to start.
const largeStart = 60
