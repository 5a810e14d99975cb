package views

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// clusterFixture is a fixture on a cluster of three servers, whose journal has three copies. Its
// connections are to the first server.
type clusterFixture struct {
	*fixture
	cluster *streamstest.Cluster
}

func newClusterFixture(t testing.TB) *clusterFixture {
	t.Helper()
	c := &clusterFixture{fixture: &fixture{TB: t}}
	c.cluster, c.conns = streamstest.NewConnectedCluster(t)
	c.cfg = Config{AwayDelay: 3 * time.Second, AuditEvery: time.Second}
	c.journal = openJournal(t, c.conns, 3)
	c.source = newSource(t, c.journal)
	return c
}

// serverOf returns the number of the server that has the only copy of a hub's stream.
func (c *clusterFixture) serverOf(hub domain.HubID) int {
	c.Helper()
	info := c.state(hub)
	if info.Config.Replicas != 1 {
		c.Fatalf("view of %s has %d copies, want 1", hub, info.Config.Replicas)
	}
	var n int
	if _, err := fmt.Sscanf(info.Cluster.Leader, "server-%d", &n); err != nil {
		c.Fatal(err)
	}
	return n
}

// spread writes views of six hubs, two on each server, and returns them by their servers.
func (c *clusterFixture) spread() [3][]domain.HubID {
	c.Helper()
	var on [3][]domain.HubID
	all := hubs(6)
	for n, id := range all {
		server := n % len(on)
		config := streamConfig(id, 1, testRetention)
		config.PersistMode = jetstream.AsyncPersistMode
		config.Placement = &jetstream.Placement{Tags: []string{fmt.Sprint("server-", server)}}
		if _, err := c.js(id).CreateStream(c.Context(), config); err != nil {
			c.Fatal(err)
		}
		on[server] = append(on[server], id)
	}
	for range 3 {
		c.commit(all...)
	}
	c.flush()
	return on
}

// The views of a server that is away are written anew on others, with and without new records for
// them, and with the same sequences. When the server comes back with its old copies, they are
// removed, and the views stay as they are.
func TestServerAway(t *testing.T) {
	t.Parallel()
	c := newClusterFixture(t)
	c.start()
	on := c.spread()
	const gone = 2
	if got := c.serverOf(on[gone][0]); got != gone {
		t.Fatalf("view is on server %d, want %d", got, gone)
	}
	written, silent := on[gone][:1], on[gone][1:]
	c.cluster.Stop(gone)
	c.commit(written...)
	c.commit(on[1]...)
	c.checkAll(written...)
	c.checkAll(silent...)
	c.checkAll(on[1]...)
	for _, id := range on[gone] {
		if c.serverOf(id) == gone {
			t.Errorf("view of %s is on the server that is away", id)
		}
		if mode := c.state(id).Config.PersistMode; mode != jetstream.AsyncPersistMode {
			t.Errorf("view of %s has the persist mode %v, want async", id, mode)
		}
	}
	// On a busy machine another server may not answer for AwayDelay.
	if got := c.value(c.metrics.rebuilds); got < len(on[gone]) {
		t.Errorf("%d views were written anew, want the %d of the server", got, len(on[gone]))
	}
	c.commit(on[gone]...)
	c.flush()

	c.cluster.Start(t, gone)
	for range 5 {
		c.commit(on[gone]...)
	}
	streamstest.Eventually(t, "the old copies are removed", func() bool {
		for _, id := range on[gone] {
			account, err := c.cluster.Servers[gone].LookupAccount(
				string(streams.ShardAccount(streams.ShardOf(id, len(c.conns.Shards)))),
			)
			streamstest.Must(t, err)
			if account.JetStreamIsStreamLeader(streams.HubStream(id)) {
				return false
			}
		}
		return c.cluster.Servers[gone].JetStreamIsCurrent()
	})
	c.flush()
	for n := range on {
		c.checkAll(on[n]...)
	}
	for _, id := range on[gone] {
		if c.serverOf(id) == gone {
			t.Errorf("view of %s is on the server that was away", id)
		}
	}
}

// The views of a server that is back before AwayDelay has passed stay on it, and are completed. The
// server of others comes back without its files: their streams come back empty, and are written
// again from the journal.
func TestServerBack(t *testing.T) {
	t.Parallel()
	for name, wipe := range map[string]bool{"with its files": false, "without its files": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClusterFixture(t)
			c.cfg.AwayDelay = time.Hour
			c.start()
			on := c.spread()
			const gone = 2
			c.cluster.Stop(gone)
			if wipe {
				streamstest.Must(t, os.RemoveAll(c.cluster.Dir(gone)))
			}
			c.commit(on[gone][0])
			streamstest.Eventually(t, "the views are known to be away", func() bool {
				return c.value(c.metrics.away) == len(on[gone])
			})
			c.cluster.Start(t, gone)
			c.checkAll(on[gone]...)
			streamstest.Eventually(t, "no view is away", func() bool {
				return c.value(c.metrics.away) == 0
			})
			c.flush()
		})
	}
}

// A server that crashes has not written the last messages that it had acknowledged. Once it has
// started again, its views are completed, long before the next regular audit and without a new
// record.
func TestServerLosesTheLastMessages(t *testing.T) {
	t.Parallel()
	c := newClusterFixture(t)
	c.cfg.AuditEvery = time.Hour
	var started atomic.Pointer[time.Time]
	started.Store(new(time.Time))
	c.cfg.ServerStarted = func() time.Time { return *started.Load() }
	audited := make(chan struct{}, 100)
	c.hook = func(step string) {
		if step == "audited" {
			audited <- struct{}{}
		}
	}
	c.start()
	on := c.spread()
	for range c.group.own() {
		<-audited
	}
	const crashed = 2
	c.cluster.Stop(crashed)
	for _, id := range on[crashed] {
		c.truncate(crashed, id)
	}
	c.cluster.Start(t, crashed)
	for _, id := range on[crashed] {
		streamstest.Eventually(t, "a view is back", func() bool {
			info, err := jsapi.New(c.nc(id)).Info(t.Context(), streams.HubStream(id))
			return err == nil && info.State.LastSeq == 2
		})
	}
	now := time.Now()
	started.Store(&now)
	c.checkAll(on[crashed]...)
	if got := c.value(c.metrics.rebuilds); got != 0 {
		t.Errorf("%d views were written anew, want none: only their last messages were lost", got)
	}
}

// truncate removes the last message from the files of a hub's stream on a server.
func (c *clusterFixture) truncate(server int, hub domain.HubID) {
	c.Helper()
	account := string(streams.ShardAccount(streams.ShardOf(hub, len(c.conns.Shards))))
	dir := filepath.Join(
		c.cluster.Dir(server), "jetstream", account, "streams", streams.HubStream(hub), "msgs",
	)
	blocks, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil || len(blocks) != 1 {
		c.Fatalf("%s: blocks %v: %v", dir, blocks, err)
	}
	info, err := os.Stat(blocks[0])
	if err == nil {
		err = os.Truncate(blocks[0], info.Size()-1)
	}
	if err == nil {
		err = os.Remove(filepath.Join(dir, "index.db"))
	}
	streamstest.Must(c, err)
}
