package faults

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"hubcloud/streams/streamstest"
	"hubcloud/test/harness"
	"hubcloud/test/natscluster"
)

// TestCluster runs two replicas on a cluster of three nats-servers that `hubcloud broker-config`
// configured. It reads the feed of an organization by pages, long polls and streams, in 1, 3 and 16
// parts and filtered, at both replicas. Meanwhile replicas and servers are killed, so that shards
// move, and hubs are added and reset. Every reader gets the events of each hub's logs once and in
// order, each log with hub.log_reset as its first event if a reset began it, and feed.gap in the
// place of what a reset has taken: one set of readers rests over every reset, and always gets it.
// The hubs of another organization never appear. -faults.rounds N repeats the faults.
func TestCluster(t *testing.T) {
	t.Parallel()
	f := newFeedTrial(t)
	acrossServers(t, f.broker, f.first, f.second)
	renewCertificate(t, f.broker)
	for round := range *rounds {
		f.second.Kill()
		f.awaitProgress("without the second replica")
		f.reset(round % len(f.hubs))
		f.second.Begin()
		f.first.Kill()
		f.awaitProgress("without the first replica")
		f.first.Begin()
		node := f.broker.Nodes[1+round%2] // enrolment sends new hubs to the first server
		node.Kill()
		f.awaitProgress("without a server")
		f.add() // two of three servers are enough to create a stream
		node.Start()
		f.awaitProgress("with everything again")
	}
	f.check()
}

// acrossServers connects a hub to each server, and lets every replica send it requests and
// disconnect it.
func acrossServers(
	t *testing.T, broker *natscluster.Cluster, first, second *harness.Service,
) {
	t.Helper()
	// No reader of the feed waits for these hubs.
	tenant := harness.NewTenant(t, first, "Across servers")
	other := harness.NewClient(t, second.Base(), tenant.Key)
	for _, address := range broker.MQTT {
		hub := adopted(t, first, tenant)
		hub.Disconnect()
		hub.Through(address)
		hub.OnRequest(func(harness.Request) harness.Response {
			return harness.Response{Result: map[string]any{"devices": []any{}}}
		})
		hub.GoOnline()
		for _, replica := range []*harness.Client{tenant.Client, other} {
			streamstest.Eventually(t, "the hub at "+address+" is asked", func() bool {
				answer, err := replica.Try(http.MethodGet, "/hubs/"+hub.ID+"/devices", nil)
				return err == nil && answer.Status == http.StatusOK
			})
		}
		other.Must(http.MethodPost, "/hubs/"+hub.ID+"/reset-link", nil, http.StatusNoContent)
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
