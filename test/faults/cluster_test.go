package faults

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"net/http"
	"sync"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// clusterKills is how often TestCluster kills a server or a replica. Each kill takes up to 15
// seconds, in which the servers elect leaders.
var clusterKills = flag.Int(
	"cluster.kills", 0, "how often the test of a cluster kills a server, then a replica, in turn",
)

// TestCluster runs two replicas on a cluster of three nats-servers that `hubcloud broker-config`
// configured, with three copies of every stream. With -cluster.kills it kills a server, then a
// replica, under traffic. Hubs and consumers continue over the others, and what was acknowledged is
// stored once and in order.
func TestCluster(t *testing.T) {
	t.Parallel()
	broker := natscluster.StartOnLoopback(t, "2")
	first := broker.Join()
	second := broker.Join()
	tenant := harness.NewTenant(t, first, "Cluster")
	other := *tenant
	other.Client = harness.NewClient(t, second.Base(), tenant.Key)

	load := newClusterLoad(t, broker, first, tenant, &other)
	load.awaitProgress("with all", tenant.Client)
	acrossServers(t, broker, first, tenant, &other)
	renewCertificate(t, broker)
	for kill := range *clusterKills {
		if kill%2 == 1 {
			second.Kill()
			load.awaitProgress("without the second replica", tenant.Client)
			second.Begin()
			load.awaitProgress("with everything again", other.Client)
			continue
		}
		lost := 2 - kill/2%2 // enrolment sends new hubs to the first server
		node := broker.Nodes[lost]
		away := adopted(t, first, tenant)
		away.Disconnect()
		away.Through(broker.MQTT[lost])
		away.GoOnline()
		node.Kill()
		killed := time.Now()
		load.awaitProgress("without a server", tenant.Client)
		// Two of three servers are enough to create a stream, so a new hub need not wait.
		load.add(broker, first, tenant, &other)
		load.awaitProgress("with a new hub, still without the server", other.Client)
		tenant.NewSite("Made without a server")
		// The killed server did not report that its hubs disconnected.
		streamstest.Eventually(t, "a hub of the lost server that stays away is offline",
			func() bool {
				var hub struct{ Connection struct{ Status string } }
				answer, err := other.Try(http.MethodGet, "/hubs/"+away.ID, nil)
				if err != nil || answer.Status != http.StatusOK {
					return false
				}
				answer.JSON(t, &hub)
				return hub.Connection.Status == "offline"
			},
		)
		t.Logf(
			"without a server: a hub of it that stays away is offline after %s", time.Since(killed),
		)
		node.Start()
	}
	load.check()
}

// acrossServers connects a hub to each server, and lets every replica send it requests and
// disconnect it.
func acrossServers(
	t *testing.T, broker *natscluster.Cluster, first *harness.Service, replicas ...*harness.Tenant,
) {
	t.Helper()
	for _, address := range broker.MQTT {
		hub := adopted(t, first, replicas[0])
		hub.Disconnect()
		hub.Through(address)
		hub.OnRequest(func(harness.Request) harness.Response {
			return harness.Response{Result: map[string]any{"devices": []any{}}}
		})
		hub.GoOnline()
		for _, replica := range replicas {
			streamstest.Eventually(t, "the hub at "+address+" is asked", func() bool {
				answer, err := replica.Try(http.MethodGet, "/hubs/"+hub.ID+"/devices", nil)
				return err == nil && answer.Status == http.StatusOK
			})
		}
		replicas[1].Must(http.MethodPost, "/hubs/"+hub.ID+"/reset-link", nil, http.StatusNoContent)
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
func renewCertificate(t *testing.T, broker *natscluster.Cluster) {
	t.Helper()
	before := servedCertificate(broker.MQTT[0])
	broker.Renew()
	broker.Nodes[0].Reload()
	streamstest.Eventually(t, "the server presents another certificate", func() bool {
		after := servedCertificate(broker.MQTT[0])
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

// clusterLoad is hubs that send, and consumers that read their events at each replica, during all
// kills.
type clusterLoad struct {
	t                        *testing.T
	replicas                 []*harness.Tenant
	senders                  []*sender
	followers                []*follower
	positions                map[string]*position
	sending, reading         sync.WaitGroup
	stopSending, stopReading chan struct{}
}

func newClusterLoad(
	t *testing.T, broker *natscluster.Cluster, first *harness.Service, replicas ...*harness.Tenant,
) *clusterLoad {
	t.Helper()
	c := &clusterLoad{
		t:           t,
		replicas:    replicas,
		positions:   map[string]*position{},
		stopSending: make(chan struct{}),
		stopReading: make(chan struct{}),
	}
	for range 6 {
		c.add(broker, first, replicas...)
	}
	return c
}

// add adds a hub that connects to each server in turn, a reader of its pages and a reader of its
// stream.
func (c *clusterLoad) add(
	broker *natscluster.Cluster, first *harness.Service, replicas ...*harness.Tenant,
) {
	c.t.Helper()
	hub := adopted(c.t, first, replicas[0])
	hub.Disconnect()
	turn := len(c.senders) % len(broker.MQTT)
	through := append(append([]string{}, broker.MQTT[turn:]...), broker.MQTT[:turn]...)
	h := &sender{hub: hub, pace: 50 * time.Millisecond, through: through}
	start := replicas[0].Head(hub.ID)
	c.positions[hub.ID] = &position{hub: hub.ID, cursor: start}
	pages := &follower{client: replicas[1].Client, hub: hub.ID, cursor: start}
	stream := &follower{client: replicas[0].Client, hub: hub.ID, cursor: start}
	h.readers = []*follower{pages, stream}
	c.senders, c.followers = append(c.senders, h), append(c.followers, pages, stream)
	c.sending.Go(func() { h.run(c.stopSending) })
	c.reading.Go(func() { pages.run(c.stopReading) })
	c.reading.Go(func() { stream.runStream(c.stopReading) })
}

// awaitProgress waits until everything acknowledged before the call was read, and a new event of
// every hub.
func (c *clusterLoad) awaitProgress(when string, client *harness.Client) {
	c.t.Helper()
	began := time.Now()
	for _, h := range c.senders {
		p, want := c.positions[h.hub.ID], h.progress.Load()+1
		p.client = client
		for p.number < want {
			streamstest.Eventually(c.t, h.hub.ID+" has another event "+when, p.more)
		}
	}
	c.t.Logf("%s: every hub has a new event after %s", when, time.Since(began))
}

// check stops the load and checks that no event is lost, duplicated or out of order, in the logs
// and in what each consumer received.
func (c *clusterLoad) check() {
	c.t.Helper()
	close(c.stopSending)
	c.sending.Wait()
	close(c.stopReading)
	c.reading.Wait()
	for _, h := range c.senders {
		for _, replica := range c.replicas {
			if last := numbersOf(c.t, h.hub.ID, replica.AllEvents(h.hub.ID, "")); last < h.acked {
				c.t.Errorf(
					"hub %s: acknowledged through %d, stored through %d", h.hub.ID, h.acked, last,
				)
			}
		}
	}
	for _, f := range c.followers {
		numbersOf(c.t, "a follower of "+f.hub, f.got)
	}
}

// position is a reader's position in a hub's log, and the number of the last report before it. It
// ignores API errors.
type position struct {
	client *harness.Client
	hub    string
	cursor string
	number uint64
}

// more reads a page and reports whether it has events.
func (p *position) more() bool {
	answer, err := p.client.Try(
		http.MethodGet, "/hubs/"+p.hub+"/events?limit=500&after="+p.cursor, nil,
	)
	if err != nil || answer.Status != http.StatusOK {
		return false
	}
	var page harness.Page
	answer.JSON(p.client.T, &page)
	p.cursor = page.NextCursor
	for _, e := range page.Data {
		if e.Type == "channel.observed" {
			p.number++
		}
	}
	return len(page.Data) > 0
}
