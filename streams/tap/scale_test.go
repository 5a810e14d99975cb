package tap_test

import (
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/streamstest"
	"hubcloud/streams/tap"
)

// scaleHubs is the number of hubs in TestManyHubs. An installation may have 50,000.
var scaleHubs = flag.Int("tap.scale", 400, "number of hubs in TestManyHubs")

func scaleHub(n int) domain.HubID {
	return domain.HubID(fmt.Sprintf("hub-scal-%04d-%04d", n/10000, n%10000))
}

// TestManyHubs reads the stored events of many hubs, then new ones, and checks that the checkpoint
// has every hub.
func TestManyHubs(t *testing.T) {
	t.Parallel()
	r := newTestHubs(t, time.Hour)
	var creating errgroup.Group
	for shard, nc := range r.conns.Shards {
		creating.Go(func() error { return createLogs(t, nc, shard) })
	}
	if err := creating.Wait(); err != nil {
		t.Fatal(err)
	}
	before := heap()
	out := newSink()
	path := t.TempDir() + "/checkpoint"
	began := time.Now()
	u := r.start(
		tap.Config{
			Follow:          true,
			Output:          out,
			Checkpoint:      path,
			CheckpointEvery: 20 * time.Millisecond,
		},
	)
	out.await(t, *scaleHubs)
	t.Logf("%d hubs: stored events after %v", *scaleHubs, time.Since(began).Round(time.Millisecond))
	began = time.Now()
	for i := range 20 {
		publishTo(t, r.conns, scaleHub(i*(*scaleHubs)/20), 2)
		out.await(t, *scaleHubs+i+1)
	}
	t.Logf("20 events, one after the other, after %v", time.Since(began).Round(time.Millisecond))
	streamstest.Eventually(t, "the checkpoint has every hub", func() bool {
		c, err := tap.ReadCheckpoint(path)
		return err == nil && len(c.Hubs) == *scaleHubs
	})
	t.Logf("%d MB of memory, records and the rest of the test included", (heap()-before)>>20)
	if err := u.end(); err != nil {
		t.Error(err)
	}
}

// createLogs creates the logs of a shard, in memory, with an event each.
func createLogs(t *testing.T, nc *nats.Conn, shard int) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	for n := range *scaleHubs {
		id := scaleHub(n)
		if streams.ShardOf(id, streamstest.Shards) != shard {
			continue
		}
		_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: streams.HubStream(id), Subjects: []string{streams.LogFilter(id)},
			Storage: jetstream.MemoryStorage, MaxAge: time.Hour, AllowDirect: true,
			RePublish: &jetstream.RePublish{
				Source:      streams.LogFilter(id),
				Destination: streams.FeedDestination(id),
			},
		})
		if err != nil {
			return err
		}
		if err := nc.PublishMsg(scaleEvent(id, 1)); err != nil {
			return err
		}
	}
	return nc.FlushTimeout(testTimeout)
}

func scaleEvent(id domain.HubID, n int) *nats.Msg {
	return &nats.Msg{
		Subject: streams.HubEventSubject(
			id,
		), Header: nats.Header{"Hubcloud-Epoch": {"0000000a"}},
		Data: fmt.Appendf(
			nil,
			`{"type":"channel.observed","hub_id":%q,"device_id":1,"time":"2026-01-02T03:04:05Z","clock_trusted":true,"data":{"n":%d}}`,
			id, n,
		),
	}
}

func publishTo(t *testing.T, conns *streams.Conns, id domain.HubID, n int) {
	t.Helper()
	if err := conns.Shard(id).PublishMsg(scaleEvent(id, n)); err != nil {
		t.Fatal(err)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
