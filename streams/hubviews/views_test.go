package hubviews

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/feed"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/logformat"
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
		if err := nc.Flush(); err != nil {
			t.Fatal(err)
		}
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
		f.write(some...)
	}
	f.flush()
	if got := f.Written(); got != f.End() {
		t.Errorf("Written: got %d, want %d", got, f.End())
	}
	last := map[domain.HubID]uint64{}
	for range total {
		select {
		case msg := <-messages:
			id, m, err := feed.ParseFeed(msg)
			if err != nil || m.Seq != last[id]+1 {
				t.Fatalf("feed of %s after %d: got %d, error %v", id, last[id], m.Seq, err)
			}
			last[id] = m.Seq
			record := f.stored[id][m.Seq-1]
			if !m.Stored.Equal(record.Time) || (m.Event != nil) != record.Kind.IsEvent() ||
				m.Hidden != (record.Kind == journal.KindState) ||
				msg.Header.Get(logformat.HeaderState) != "" {
				t.Fatalf("feed of %s: got %+v, want %+v", id, m, record)
			}
		case <-time.After(time.Minute):
			t.Fatal("the feed has brought less than was committed")
		}
	}
	for _, id := range all {
		f.check(id, 1)
	}
	if got := f.count(f.Views.cfg.Metrics.backlogBytes); got != 0 {
		t.Errorf("backlog: got %d bytes, want 0", got)
	}
	if got := f.count(f.Views.cfg.Metrics.failures); got != 0 {
		t.Errorf("failures: got %d, want 0", got)
	}
}

// TestCursorsStay reads the pages of a log before and after its view was written anew. Their
// cursors must be the same.
func TestCursorsStay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start()
	for range 20 {
		f.write(hub(1))
	}
	f.flush()
	page := func() []string {
		logs, err := feed.New(f.conns, feed.Config{
			Retention: testRetention, Logger: streamstest.Logger(),
			Epoch: func(domain.HubID) (domain.Epoch, bool) {
				return domain.Epoch{ID: domain.NewEpochID(0xa)}, true
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer logs.Close()
		page, err := logs.Page(t.Context(), hub(1), "", 100)
		if err != nil {
			t.Fatal(err)
		}
		var cursors []string
		for _, e := range page.Events {
			cursors = append(cursors, e.Cursor)
		}
		return cursors
	}
	before := page()
	if err := f.Rebuild(t.Context(), hub(1)); err != nil {
		t.Fatal(err)
	}
	after := page()
	if len(before) != 14 || !slices.Equal(before, after) {
		t.Errorf("cursors: got %v, before the rebuild %v, want the same 14", after, before)
	}
	f.check(hub(1), 1)
}

func TestAwait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Linger = time.Hour // only Await sends
	f.start()
	f.write(hub(1), hub(1), hub(2))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.Await(ctx, hub(1), 2); err != nil {
		t.Fatal(err)
	}
	if got := f.state(hub(1)).State.LastSeq; got != 2 {
		t.Errorf("end of the view: got %d, want 2", got)
	}
	early, cancelEarly := context.WithCancel(ctx)
	cancelEarly()
	if err := f.Await(early, hub(1), 3); !errors.Is(err, context.Canceled) {
		t.Errorf("Await of a record that does not exist: got %v, want the context's error", err)
	}
	if err := f.Rebuild(ctx, hub(9)); !errors.Is(err, ErrUnknown) {
		t.Errorf("Rebuild of an unknown hub: got %v, want ErrUnknown", err)
	}

	waiting := make(chan error, 1)
	go func() { waiting <- f.Await(ctx, hub(1), 3) }()
	f.stop()
	if err := <-waiting; !errors.Is(err, ErrStopped) {
		t.Errorf("Await after the stop: got %v, want ErrStopped", err)
	}
	if err := f.Add(ctx, f.commit(hub(1))); !errors.Is(err, ErrStopped) {
		t.Errorf("Add after the stop: got %v, want ErrStopped", err)
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Group, f.cfg.Groups = 1, 2
	f.start()
	written := 0
	for _, id := range hubs(10) {
		c := f.commit(id)
		ours := streams.ShardOf(id, streamstest.Shards)%2 == 1
		if err := f.Add(t.Context(), c); (err == nil) != ours {
			t.Fatalf("add a record of %s, in our group: %t: got the error %v", id, ours, err)
		}
		if ours {
			written++
		}
	}
	f.flush()
	if got := f.count(f.Views.cfg.Metrics.written); got != written || written == 0 {
		t.Errorf("records written: got %d, want %d", got, written)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	conns := streamstest.Start(t)
	valid := Config{
		Conns: conns, Index: journal.NewIndex(0), Reader: &journal.Reader{},
		Positions: positions(t, conns), Retention: time.Hour,
	}.WithDefaults()
	if err := valid.Validate(); err != nil {
		t.Fatalf("Validate: got %v, want nil", err)
	}
	for field, change := range map[string]func(*Config){
		"Conns":     func(c *Config) { c.Conns = nil },
		"Groups":    func(c *Config) { c.Groups = streamstest.Shards + 1 },
		"Group":     func(c *Config) { c.Group = 1 },
		"Index":     func(c *Config) { c.Index = nil },
		"Reader":    func(c *Config) { c.Reader = nil },
		"Positions": func(c *Config) { c.Positions = jsapi.Bucket{} },
		"Retention": func(c *Config) { c.Retention = time.Millisecond },
		"Replicas":  func(c *Config) { c.Replicas = -1 },
	} {
		cfg := valid
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), field+" is ") {
			t.Errorf("Validate with a wrong %s: got %v, want an error that names it", field, err)
		}
	}
}

// TestStartStop starts and stops Views while records are added. What was added must be in the views
// once other Views have run.
func TestStartStop(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.cfg.Linger = time.Millisecond
	all := hubs(10)
	for range 20 {
		f.start()
		for range 3 {
			f.write(all...)
		}
		f.stop()
	}
	f.start()
	f.flush()
	for _, id := range all {
		f.check(id, 1)
	}
}

// TestUnfollowedFeed: what nobody subscribes to is not published, and records are collected for
// longer than while somebody does.
func TestUnfollowedFeed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	all := hubs(2)
	f.cfg.Linger, f.cfg.FeedLinger = 2*time.Hour, time.Hour
	f.cfg.HasSubscribers = func(account streams.Account, subject string) bool {
		shard := streams.ShardOf(all[1], len(f.conns.Shards))
		return account == streams.ShardAccount(shard) &&
			strings.HasPrefix(subject, "feed."+string(all[1])+".")
	}
	feeds := map[domain.HubID]*nats.Subscription{}
	for _, id := range all {
		feed, err := f.nc(id).SubscribeSync(streams.FeedDestination(id))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.nc(id).Flush(); err != nil {
			t.Fatal(err)
		}
		feeds[id] = feed
	}
	f.start()
	f.write(all[0])
	f.flush()
	if got := f.Views.linger(); got != 2*time.Hour {
		t.Errorf("linger of a feed without subscribers: got %v, want 2h", got)
	}
	f.write(all...)
	f.flush()
	if msg, err := feeds[all[1]].NextMsg(time.Minute); err != nil {
		t.Fatalf("feed with a subscriber: got %v, error %v", msg, err)
	}
	if got := f.Views.linger(); got != time.Hour {
		t.Errorf("linger of a feed with subscribers: got %v, want 1h", got)
	}
	if err := f.nc(all[0]).Flush(); err != nil {
		t.Fatal(err)
	}
	if n, _, _ := feeds[all[0]].Pending(); n != 0 {
		t.Errorf("feed without a subscriber: got %d messages, want none", n)
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
	f.write(all...)
	f.flush()

	one := all[:1]
	f.write(one...)
	streamstest.Eventually(t, "the record of an idle shard is written", func() bool {
		tip, _ := f.index.Tip(one[0])
		return f.state(one[0]).State.LastSeq == tip.Seq
	})

	before := runs.Load()
	const commits = 10
	for range commits {
		f.write(all...)
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
	for _, id := range all {
		f.check(id, 1)
	}
}
