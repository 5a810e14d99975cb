package views

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/streamstest"
)

// TestOrder writes commits of many hubs, in random order, and compares views and feed with them.
func TestOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	messages := make(chan *nats.Msg, 10_000)
	for _, nc := range f.conns.Shards {
		if _, err := nc.ChanSubscribe(streams.AnyFeed, messages); err != nil {
			t.Fatal(err)
		}
		streamstest.Must(t, nc.Flush())
	}
	f.cfg.Linger = 5 * time.Millisecond
	f.start()
	all := hubs(20)
	random := rand.New(rand.NewPCG(1, 2))
	total := 0
	for range 100 {
		var some []domain.HubID
		for range 1 + random.IntN(20) {
			some = append(some, all[random.IntN(len(all))])
		}
		total += len(some)
		f.commit(some...)
	}
	f.flush()
	last := map[domain.HubID]uint64{}
	for range total {
		select {
		case msg := <-messages:
			id := domain.HubID(strings.Split(msg.Subject, ".")[1])
			seq, err := jsapi.Sequence(msg)
			if err != nil || seq != last[id]+1 {
				t.Fatalf("feed of %s after %d: got %d, error %v", id, last[id], seq, err)
			}
			last[id] = seq
			record := f.stored[id][seq-1]
			if msg.Header.Get(HeaderTime) != FormatTime(record.Time) ||
				msg.Subject != streams.FeedSubject(record.Kind.Subject(id)) ||
				(msg.Header[HeaderState] != nil) != (record.Kind == journal.KindState) ||
				msg.Header.Get(HeaderState) != "" {
				t.Fatalf("feed of %s: got %+v, want %+v", id, msg, record)
			}
		case <-time.After(time.Minute):
			t.Fatal("the feed has brought less than was committed")
		}
	}
	f.checkAll(all...)
	if got := f.value(f.metrics.backlogBytes); got != 0 {
		t.Errorf("backlog: got %d bytes, want 0", got)
	}
	if got := f.value(f.metrics.failures); got != 0 {
		t.Errorf("failures: got %d, want 0", got)
	}
}

// TestUnfollowedFeed: what nobody subscribes to is not published, and records are collected for
// longer than while somebody does. The first record with a subscriber ends that, also for records
// that are collected already.
func TestUnfollowedFeed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	all := hubs(2)
	f.cfg.Linger, f.cfg.FeedLinger = 2*time.Hour, 10*time.Millisecond
	f.cfg.HasSubscribers = func(account streams.Account, subject string) bool {
		shard := streams.ShardOf(all[1], len(f.conns.Shards))
		return account == streams.ShardAccount(shard) &&
			strings.HasPrefix(subject, "feed."+string(all[1])+".")
	}
	feeds := map[domain.HubID]*nats.Subscription{}
	for _, id := range all {
		feed, err := f.nc(id).SubscribeSync(streams.FeedDestination(id))
		streamstest.Must(t, err)
		streamstest.Must(t, f.nc(id).Flush())
		feeds[id] = feed
	}
	f.start()
	f.commit(all[0])
	f.flush()
	if got := f.group.linger(); got != 2*time.Hour {
		t.Errorf("linger of a feed without subscribers: got %v, want 2h", got)
	}
	f.commit(all[0])
	f.commit(all[1])
	if msg, err := feeds[all[1]].NextMsg(time.Minute); err != nil {
		t.Fatalf("feed with a subscriber: got %v, error %v", msg, err)
	}
	if got := f.group.linger(); got != f.cfg.FeedLinger {
		t.Errorf("linger of a feed with subscribers: got %v, want %v", got, f.cfg.FeedLinger)
	}
	f.flush()
	streamstest.Must(t, f.nc(all[0]).Flush())
	if n, _, _ := feeds[all[0]].Pending(); n != 0 {
		t.Errorf("feed without a subscriber: got %d messages, want none", n)
	}
}

// TestComplete asks for views that wait for their linger. The answer comes once they have what was
// stored, also the ones that a repair has to begin.
func TestComplete(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Linger, f.cfg.FeedLinger = 2*time.Hour, 2*time.Hour
	f.start()
	f.commit(hub(1))
	f.flush()
	f.commit(hub(1), hub(1), hub(2))
	f.followed()
	for _, id := range hubs(3)[1:] {
		answer, err := f.nc(id).Request(streams.CompleteViews, nil, time.Minute)
		if err != nil || len(answer.Data) > 0 {
			t.Fatalf("request to complete the views: got %v, error %v", answer, err)
		}
		if got, want := f.state(id).State.LastSeq, uint64(len(f.stored[id])); got != want {
			t.Errorf("last sequence in the view of %s: got %d, want %d", id, got, want)
		}
	}
}

// TestBusyShardCollects: without word of subscribers, as in a cluster, records wait for FeedLinger
// only, but those for many views of a shard for up to Linger, so that they share runs.
func TestBusyShardCollects(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var all []domain.HubID // of one shard
	for n := 0; len(all) < 4*busyViews; n++ {
		if id := hub(n); streams.ShardOf(id, len(f.conns.Shards)) == 0 {
			all = append(all, id)
		}
	}
	f.cfg.Linger, f.cfg.FeedLinger = time.Hour, 20*time.Millisecond
	var runs atomic.Int64
	collects := make(chan struct{})
	f.hook = func(step string) {
		switch step {
		case "send":
			runs.Add(1)
		case "collect":
			select {
			case collects <- struct{}{}:
			default:
			}
		}
	}
	f.start()
	f.commit(all...)
	f.flush()

	one := all[:1]
	f.commit(one...)
	f.awaitEnd(one[0]) // the shard is idle

	before := runs.Load()
	const commits = 10
	for range commits {
		f.commit(all...)
		select { // without that, each commit would get runs of its own
		case <-collects:
		case <-time.After(time.Minute):
			t.Fatal("the busy shard does not collect records")
		}
	}
	f.flush()
	// A commit that is added slowly may be sent in part.
	if got := int(runs.Load() - before); got > len(all)*commits/2 {
		t.Errorf("%d records: got %d runs, want about %d", len(all)*commits, got, len(all))
	}
	f.checkAll(all...)
}
