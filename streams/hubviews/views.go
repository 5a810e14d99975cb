package hubviews

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

const (
	// prepareWorkers and repairWorkers are how many views are prepared and repaired at once.
	prepareWorkers = 16
	repairWorkers  = 8
	// maintainEvery is how often overdue work is looked for.
	maintainEvery = time.Second
	// logEvery is the least time between two log lines about views that cannot be written.
	logEvery = time.Second
)

var (
	// ErrStopped is returned once Run has returned.
	ErrStopped = errors.New("hub views: stopped")
	// ErrAway reports that the server of a view is away. It is an ErrNoLeader as well.
	ErrAway = fmt.Errorf("hub views: %w: the server of the view is away", jsapi.ErrNoLeader)
	// ErrUnknown reports that the journal has nothing of the hub.
	ErrUnknown = errors.New("hub views: the journal has nothing of the hub")
)

// Views writes the hub logs of one group of the journal. Except for New and Run, all methods may be
// called at any time, from any goroutine.
type Views struct {
	cfg Config
	// shards are by their numbers; nil for those of other groups.
	shards  []*shard
	backlog backlog
	feed    *queue[[]entry]
	// publishedAt is when the feed's last record with a subscriber was published, in nanoseconds
	// since 1970.
	publishedAt atomic.Int64
	prepares    *queue[*view]
	repairs     *queue[*view]
	// compared is a position up to which views are not compared with the journal at the start: a
	// former run has found them synced.
	compared uint64
	// sometimes limits log lines about views that cannot be written.
	sometimes rate.Sometimes
	// audited is when the last complete audit began.
	audited atomic.Pointer[time.Time]
	// away counts the views whose servers are away.
	away atomic.Int64
	// stopped is closed when Run returns.
	stopped chan struct{}
	// hook is called by tests between the steps of the work.
	hook func(step string)

	mu sync.Mutex
	// hurried counts the callers that wait for records to be written.
	hurried int
	// retries are the repairs that failed, with the time at which each is tried again.
	retries map[*view]time.Time
}

// New returns Views. It reads the position up to which the views are synced. The caller must call
// Run.
func New(ctx context.Context, cfg Config) (*Views, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg.Logger = cfg.Logger.With("group", cfg.Group)
	v := &Views{
		cfg: cfg, shards: make([]*shard, len(cfg.Conns.Shards)),
		backlog: backlog{
			limit: cfg.MaxBacklogBytes, metrics: cfg.Metrics, last: cfg.From, position: cfg.From,
			behind: map[*view]uint64{}, changed: make(chan struct{}),
		},
		feed: newQueue[[]entry](), prepares: newQueue[*view](), repairs: newQueue[*view](),
		sometimes: rate.Sometimes{First: 1, Interval: logEvery},
		stopped:   make(chan struct{}),
		retries:   map[*view]time.Time{},
	}
	var err error
	if v.compared, err = v.loadPosition(ctx); err != nil {
		return nil, err
	}
	for number := cfg.Group; number < len(v.shards); number += cfg.Groups {
		if v.shards[number], err = newShard(v, number); err != nil {
			v.close()
			return nil, err
		}
	}
	v.replay()
	return v, nil
}

// Run writes the records that are added and repairs views until ctx ends. It returns nil then, and
// leaves what is in the backlog to the next run. It must be called once.
func (v *Views) Run(ctx context.Context) error {
	defer v.close()
	group, ctx := errgroup.WithContext(ctx)
	for _, s := range v.ownShards() {
		group.Go(func() error { return s.run(ctx) })
	}
	group.Go(func() error { return v.publishFeed(ctx) })
	for range prepareWorkers {
		group.Go(func() error { return v.runPrepares(ctx) })
	}
	for range repairWorkers {
		group.Go(func() error { return v.runRepairs(ctx) })
	}
	group.Go(func() error { return v.maintain(ctx) })
	group.Go(func() error { return v.audit(ctx) })
	return group.Wait()
}

func (v *Views) close() {
	close(v.stopped)
	v.backlog.stop()
	v.cfg.Metrics.away.Sub(float64(v.away.Load()))
	v.cfg.Metrics.unwritten.DeleteLabelValues(strconv.Itoa(v.cfg.Group))
	for _, s := range v.ownShards() {
		s.out.Close()
		s.setReplicated(0)
	}
}

// ownShards returns the shards of the group.
func (v *Views) ownShards() []*shard {
	own := make([]*shard, 0, len(v.shards)/v.cfg.Groups+1)
	for _, s := range v.shards {
		if s != nil {
			own = append(own, s)
		}
	}
	return own
}

// shardOf returns the shard of a hub; nil if it is that of another group.
func (v *Views) shardOf(hub domain.HubID) *shard {
	return v.shards[streams.ShardOf(hub, len(v.shards))]
}

// Add queues the records of a commit for the views and the feed. Commits must be added in their
// order, each once, by one goroutine, and not be changed afterwards. Add waits while the backlog is
// full. The error is ctx's, or ErrStopped; the commit is then not added.
func (v *Views) Add(ctx context.Context, c journal.Commit) error {
	for i := range c.Records {
		if hub := c.Records[i].Hub; v.shardOf(hub) == nil {
			return fmt.Errorf(
				"hub views: commit %d has a record of %s, which is not in group %d", c.Seq, hub,
				v.cfg.Group,
			)
		}
	}
	counted := newCommit(c)
	if err := v.backlog.add(ctx, counted); err != nil {
		return err
	}
	v.step("add")
	defer v.backlog.done(counted, 1)
	now := time.Now()
	for i := range c.Records {
		e := entry{record: &c.Records[i], commit: counted}
		s := v.shardOf(e.record.Hub)
		s.mu.Lock()
		w := s.view(e.record.Hub)
		prepare := w.add(e, now)
		s.mu.Unlock()
		if prepare {
			v.prepares.push(w)
		}
	}
	if v.backlog.crowded() {
		v.signalShards()
	}
	return nil
}

// Written returns a commit of the journal: the views have the records of every commit up to it,
// acknowledged by the broker. Views of which that is not known count as if they lacked everything
// that a former run has not found synced.
func (v *Views) Written() uint64 { return v.backlog.written() }

// Await returns once the view of a hub has everything up to a sequence. The error is ctx's,
// ErrStopped, or ErrAway.
func (v *Views) Await(ctx context.Context, hub domain.HubID, seq uint64) error {
	s := v.shardOf(hub)
	if s == nil {
		return fmt.Errorf("hub views: %s is not in group %d", hub, v.cfg.Group)
	}
	_, known := v.cfg.Index.Tip(hub)
	done := make(chan struct{})
	s.mu.Lock()
	w := s.view(hub)
	settled := w.state == stateCurrent && w.endSince.After(v.cfg.ServerStarted())
	switch {
	case settled && w.end >= seq:
		s.mu.Unlock()
		return nil
	case !w.awaySince.IsZero():
		s.mu.Unlock()
		return ErrAway
	case w.state == stateCurrent && !settled:
		w.fallBehind(noCommit) // its server may have lost the end
	case w.state == stateNew && known:
		w.fallBehind(noCommit)
	}
	w.waiters = append(w.waiters, waiter{seq, done})
	s.mu.Unlock()
	defer v.hurry()()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		w.removeWaiter(done)
		return ctx.Err()
	case <-v.stopped:
		return ErrStopped
	}
}

// Flush returns once the views have every record that was added before the call. Records that are
// added meanwhile may prolong it. The error, ctx's or ErrStopped, reports how much is missing.
func (v *Views) Flush(ctx context.Context) error {
	defer v.hurry()()
	if err := v.awaitAudited(ctx); err != nil {
		return err
	}
	for {
		commits, behind, changed := v.backlog.state()
		if commits == 0 && behind == 0 {
			return nil
		}
		var err error
		select {
		case <-changed:
			continue
		case <-ctx.Done():
			err = ctx.Err()
		case <-v.stopped:
			err = ErrStopped
		}
		return fmt.Errorf(
			"hub views: %d commits not written, %d views behind: %w", commits, behind, err,
		)
	}
}

// Rebuild deletes the stream of a hub's log, writes it anew from the journal and returns once it is
// complete. Messages that are older than the journal are kept, as far as they can be read. The
// error is ctx's, ErrStopped, ErrAway, or ErrUnknown.
func (v *Views) Rebuild(ctx context.Context, hub domain.HubID) error {
	s := v.shardOf(hub)
	if s == nil {
		return fmt.Errorf("hub views: %s is not in group %d", hub, v.cfg.Group)
	}
	tip, ok := v.cfg.Index.Tip(hub)
	if !ok {
		return fmt.Errorf("%w: %s", ErrUnknown, hub)
	}
	s.mu.Lock()
	w := s.view(hub)
	w.damaged = true
	w.fallBehind(noCommit)
	s.mu.Unlock()
	v.retryNow(w)
	return v.Await(ctx, hub, tip.Seq)
}

// hurry ends the linger until the returned function is called.
func (v *Views) hurry() (end func()) {
	v.mu.Lock()
	v.hurried++
	v.mu.Unlock()
	v.signalShards()
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.hurried--
	}
}

// urgent reports whether records are to be sent without a linger.
func (v *Views) urgent() bool {
	v.mu.Lock()
	hurried := v.hurried > 0
	v.mu.Unlock()
	return hurried || v.backlog.crowded()
}

func (v *Views) signalShards() {
	for _, s := range v.shards {
		if s != nil {
			s.signal()
		}
	}
}

func (v *Views) runPrepares(ctx context.Context) error {
	for {
		w, ok := v.prepares.next(ctx)
		if !ok {
			return nil
		}
		w.shard.prepare(ctx, w)
	}
}

// maintain repeats failed repairs, gives up overdue answers, stores the position that is synced, and
// reports how far the views are behind.
func (v *Views) maintain(ctx context.Context) error {
	ticker := time.NewTicker(min(maintainEvery, v.cfg.SyncDelay/4))
	defer ticker.Stop()
	var positions syncedPositions
	unwritten := v.cfg.Metrics.unwritten.WithLabelValues(strconv.Itoa(v.cfg.Group))
	unwritten.Set(float64(v.backlog.unwritten()))
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			for _, s := range v.ownShards() {
				s.failOverdue(now)
			}
			v.retryDue(now)
			unwritten.Set(float64(v.backlog.unwritten()))
			v.storeSynced(ctx, &positions, now)
		}
	}
}

// logFailure counts and logs that a view cannot be written or repaired.
func (v *Views) logFailure(w *view, message string, err error) {
	v.cfg.Metrics.failures.Inc()
	v.sometimes.Do(func() {
		v.cfg.Logger.Warn(message, slog.String("hub_id", string(w.hub)), slog.Any("error", err))
	})
}

func (v *Views) step(name string) {
	if v.hook != nil {
		v.hook(name)
	}
}
