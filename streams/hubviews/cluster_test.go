package hubviews

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
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
	c.cfg = Config{Replicas: 3, AwayDelay: time.Second, AuditEvery: time.Second}
	journals, err := journal.New(journal.Config{
		Conn: c.conns.Cloud, Retention: testRetention + journal.Reserve, Replicas: 3,
		Logger: streamstest.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	streamstest.EventuallyNil(t, "the journal is declared", func() error {
		return journals.Declare(t.Context())
	})
	writer, err := journals.OpenWriter(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	c.source = &source{
		Writer: writer, index: journal.NewIndex(0), reader: journals.NewReader(0),
		clock: time.Now().UTC(), stored: map[domain.HubID][]journal.Record{},
		next: map[domain.HubID]uint64{},
	}
	if err := c.index.Apply(journal.Commit{Seq: writer.End(), Term: 1}); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(c.conns.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	const name = "positions"
	if _, err := js.CreateKeyValue(
		t.Context(), jetstream.KeyValueConfig{Bucket: name, Replicas: 3},
	); err != nil {
		t.Fatal(err)
	}
	c.bucket = jsapi.NewBucket(c.conns.Cloud, name)
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
		config := streamConfig(id, 1, testRetention, 1)
		config.PersistMode = jetstream.AsyncPersistMode
		config.Placement = &jetstream.Placement{Tags: []string{fmt.Sprint("server-", server)}}
		if _, err := c.js(id).CreateStream(c.Context(), config); err != nil {
			c.Fatal(err)
		}
		on[server] = append(on[server], id)
	}
	for range 3 {
		c.write(all...)
	}
	c.flush()
	return on
}

// awaitChecked waits until the views have everything.
func (c *clusterFixture) awaitChecked(hubs []domain.HubID, first uint64) {
	c.Helper()
	for _, id := range hubs {
		streamstest.EventuallyNil(c, "the view is complete", func() error {
			info, err := jsapi.New(c.nc(id)).Info(c.Context(), streams.HubStream(id))
			if err != nil {
				return err
			}
			if tip, _ := c.index.Tip(id); info.State.LastSeq != tip.Seq {
				return fmt.Errorf("view of %s ends at %d, not %d", id, info.State.LastSeq, tip.Seq)
			}
			return nil
		})
		c.check(id, first)
	}
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
	c.write(written...)
	c.write(on[1]...)
	c.awaitChecked(written, 1)
	c.awaitChecked(silent, 1)
	c.awaitChecked(on[1], 1)
	for _, id := range on[gone] {
		if c.serverOf(id) == gone {
			t.Errorf("view of %s is on the server that is away", id)
		}
		if mode := c.state(id).Config.PersistMode; mode != jetstream.AsyncPersistMode {
			t.Errorf("view of %s has the persist mode %v, want async", id, mode)
		}
	}
	if got := c.count(c.Views.cfg.Metrics.rebuilds); got != len(on[gone]) {
		t.Errorf("%d views were written anew, want the %d of the server", got, len(on[gone]))
	}
	c.write(on[gone]...)
	c.flush()

	c.cluster.Start(t, gone)
	for range 5 {
		c.write(on[gone]...)
	}
	streamstest.Eventually(t, "the old copies are removed", func() bool {
		for _, id := range on[gone] {
			account, err := c.cluster.Servers[gone].LookupAccount(
				string(streams.ShardAccount(streams.ShardOf(id, len(c.conns.Shards)))),
			)
			if err != nil {
				t.Fatal(err)
			}
			if account.JetStreamIsStreamLeader(streams.HubStream(id)) {
				return false
			}
		}
		return c.cluster.Servers[gone].JetStreamIsCurrent()
	})
	c.flush()
	for n := range on {
		c.awaitChecked(on[n], 1)
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
				if err := os.RemoveAll(c.cluster.Dir(gone)); err != nil {
					t.Fatal(err)
				}
			}
			c.write(on[gone][0])
			streamstest.Eventually(t, "the views are known to be away", func() bool {
				return c.count(c.Views.cfg.Metrics.away) == len(on[gone])
			})
			id := on[gone][0]
			tip, _ := c.index.Tip(id)
			if err := c.Await(t.Context(), id, tip.Seq); !errors.Is(err, ErrAway) {
				t.Errorf("Await of a view that is away: %v, want ErrAway", err)
			}
			c.cluster.Start(t, gone)
			c.awaitChecked(on[gone], 1)
			streamstest.Eventually(t, "no view is away", func() bool {
				return c.count(c.Views.cfg.Metrics.away) == 0
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
	for range c.ownShards() {
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
	// Who waits for a view gets a complete one, before the audit too.
	id := on[crashed][0]
	tip, _ := c.index.Tip(id)
	if err := c.Await(t.Context(), id, tip.Seq); err != nil {
		t.Fatal(err)
	}
	if end := c.state(id).State.LastSeq; end != tip.Seq {
		t.Errorf("the view of %s ends at %d after Await, want %d", id, end, tip.Seq)
	}
	c.flush()
	for _, id := range on[crashed] {
		tip, _ := c.index.Tip(id)
		if end := c.state(id).State.LastSeq; end != tip.Seq {
			t.Errorf("the view of %s ends at %d after Flush, want %d", id, end, tip.Seq)
		}
	}
	c.awaitChecked(on[crashed], 1)
	if got := c.count(c.Views.cfg.Metrics.rebuilds); got != 0 {
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
	if err != nil {
		c.Fatal(err)
	}
}

// Streams from before there was a journal have three copies. They keep them until the journal has
// all that they have, and then get one copy, without a change of what they have, also while they
// are written to.
func TestCopiesAreRemoved(t *testing.T) {
	t.Parallel()
	c := newClusterFixture(t)
	all := hubs(4)
	for _, id := range all {
		config := streamConfig(id, 0, testRetention, 3)
		if _, err := c.js(id).CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		// Messages that the journal does not have.
		c.begin(id, 3)
		c.publish(id, `{"type":"x","n":1}`)
		c.publish(id, `{"type":"x","n":2}`)
	}
	audits := make(chan struct{}, 1)
	c.hook = func(step string) {
		if step == "audited" {
			select {
			case audits <- struct{}{}:
			default:
			}
		}
	}
	c.start()
	c.write(all...)
	c.flush()
	for range 3 * len(c.conns.Shards) {
		<-audits
	}
	for _, id := range all {
		if got := c.state(id).Config.Replicas; got != 3 {
			t.Fatalf("view of %s has %d copies while it has more than the journal, want 3", id, got)
		}
	}
	// The oldest commit expires: the journal has run for its retention.
	js, err := jetstream.New(c.conns.Cloud)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), streams.JournalStream(0))
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxMsgs, config.Discard = 1, jetstream.DiscardOld
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	config.MaxMsgs = -1
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	streamstest.Eventually(t, "every view has one copy", func() bool {
		c.write(all...)
		return !slices.ContainsFunc(all, func(id domain.HubID) bool {
			info, err := jsapi.New(c.nc(id)).Info(t.Context(), streams.HubStream(id))
			return err != nil || info.Config.Replicas != 1 || len(info.Cluster.Replicas) > 0
		})
	})
	c.flush()
	for _, id := range all {
		c.check(id, 1)
	}
	streamstest.Eventually(t, "no view has several copies by the metric", func() bool {
		return c.count(c.Views.cfg.Metrics.replicated) == 0
	})
}
