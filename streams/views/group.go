package views

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
)

const (
	// repairWorkers is how many views are repaired at once.
	repairWorkers = 16
	// maintainEvery is how often overdue work is looked for.
	maintainEvery = time.Second
	// logEvery is the least time between two log lines about views that cannot be written.
	logEvery = time.Second
	// flushTimeout bounds how long a group that ends writes what its views lack.
	flushTimeout = 3 * time.Second
)

// group writes the views of one group of the journal.
type group struct {
	*Views
	number   int
	follower *journal.Follower
	// shards are by their numbers; nil for shards of other groups.
	shards  []*shard
	backlog *backlog
	feed    *queue[[]entry]
	repairs *queue[*view]
	// publishedAt is when the feed's last record with a subscriber was published, or the first came
	// in, in nanoseconds since 1970.
	publishedAt atomic.Int64
	// sometimes limits log lines about views that cannot be written.
	sometimes rate.Sometimes
	// away counts the views whose servers are away, and behind those that lack records.
	away, behind atomic.Int64
	// hurried counts the reasons to send records without a linger.
	hurried atomic.Int64

	mu sync.Mutex
	// retries are the repairs that failed, with the time at which each is tried again.
	retries map[*view]time.Time
}

func newGroup(v *Views, number int) (*group, error) {
	g := &group{
		Views: v, number: number, shards: make([]*shard, len(v.cfg.Conns.Shards)),
		backlog: newBacklog(v.cfg.MaxBacklogBytes, v.metrics.backlogBytes),
		feed:    newQueue[[]entry](), repairs: newQueue[*view](),
		sometimes: rate.Sometimes{First: 1, Interval: logEvery},
		retries:   map[*view]time.Time{},
	}
	// What is stored already, the audit compares.
	g.follower = v.cfg.Journal.NewOffered(
		number, v.cfg.Journal.Position(number)+1, g.received, func(_, _ uint64) {},
	)
	for n := range g.shards {
		if v.cfg.Journal.GroupOf(n) != number {
			continue
		}
		s, err := newShard(g, n)
		if err != nil {
			g.close()
			return nil, err
		}
		g.shards[n] = s
	}
	return g, nil
}

// run writes the views until ctx ends, and then what they lack unless ctx ended for a cause.
func (g *group) run(ctx context.Context) error {
	defer g.close()
	working, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	tasks, working := errgroup.WithContext(working)
	tasks.Go(func() error {
		if err := g.follower.Run(working); working.Err() == nil {
			return err
		}
		return nil
	})
	for _, s := range g.own() {
		tasks.Go(func() error { return s.run(working) })
		tasks.Go(func() error { return s.serveComplete(working) })
	}
	for range repairWorkers {
		tasks.Go(func() error { return g.runRepairs(working) })
	}
	tasks.Go(func() error { return g.publishFeed(working) })
	tasks.Go(func() error { return g.maintain(working) })
	tasks.Go(func() error { return g.audit(working) })
	tasks.Go(func() error {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				g.flush(working)
			}
		case <-working.Done():
		}
		g.backlog.stop() // the follower may wait for room
		stop()
		return nil
	})
	return tasks.Wait()
}

// flush writes for some time what the views lack.
func (g *group) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	g.hurried.Add(1)
	g.signalShards()
	err := g.follower.Await(ctx, g.cfg.Journal.Position(g.number))
	if err == nil {
		err = g.backlog.await(ctx)
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		g.cfg.Logger.Warn("hub logs not completed", "group", g.number, "error", err)
	}
}

func (g *group) close() {
	g.backlog.stop()
	g.metrics.away.Sub(float64(g.away.Load()))
	g.metrics.behind.Sub(float64(g.behind.Load()))
	for _, s := range g.own() {
		s.out.Close()
	}
}

// own returns the shards of the group.
func (g *group) own() []*shard {
	var own []*shard
	for _, s := range g.shards {
		if s != nil {
			own = append(own, s)
		}
	}
	return own
}

// shardOf returns the shard of a hub of the group.
func (g *group) shardOf(hub domain.HubID) *shard {
	return g.shards[streams.ShardOf(hub, len(g.shards))]
}

// received queues the records of commits for the views and the feed. It waits while the backlog is
// full.
func (g *group) received(commits []journal.Commit) {
	for i := range commits {
		c := newCommit(&commits[i])
		if !g.backlog.hasRoom(c) {
			g.dropWaiting()
		}
		if !g.backlog.add(c) {
			return // stopped
		}
		g.step("add")
		for n := range c.Records {
			e := entry{record: &c.Records[n], commit: c}
			s := g.shardOf(e.record.Hub)
			s.mu.Lock()
			s.view(e.record.Hub).add(e)
			s.mu.Unlock()
			g.noteFollowed(s, e.record)
		}
		g.backlog.done(c, 1)
	}
	if g.backlog.isCrowded() {
		g.signalShards()
	}
}

// dropWaiting leaves the records that wait for repairs to them: they get the records from the
// journal.
func (g *group) dropWaiting() {
	for _, s := range g.own() {
		s.mu.Lock()
		for _, v := range s.hubs {
			if !v.current {
				v.drop()
			}
		}
		s.mu.Unlock()
	}
}

// urgent reports whether records are to be sent without a linger.
func (g *group) urgent() bool { return g.hurried.Load() > 0 || g.backlog.isCrowded() }

func (g *group) signalShards() {
	for _, s := range g.own() {
		s.signal()
	}
}

// maintain repeats failed repairs, and gives up overdue answers.
func (g *group) maintain(ctx context.Context) error {
	ticker := time.NewTicker(maintainEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			for _, s := range g.own() {
				s.failOverdue(now)
			}
			g.retryDue(now)
		}
	}
}

// logFailure counts and logs that a view cannot be written.
func (g *group) logFailure(v *view, message string, err error) {
	g.metrics.failures.Inc()
	g.sometimes.Do(func() {
		g.cfg.Logger.Warn(message, slog.String("hub_id", string(v.hub)), slog.Any("error", err))
	})
}
