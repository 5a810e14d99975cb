package hubbridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/lease"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/journal"
	"hubcloud/streams/jsapi"
)

// Journals are the journals of the groups of shards (journal.Journal).
type Journals interface {
	// Groups returns the number of groups, GroupOf the group of a shard.
	Groups() int
	GroupOf(shard int) int
	// Tip returns the end of a hub's log.
	Tip(hub domain.HubID) (journal.Tip, bool)
	// Write writes a group's journal until ctx ends, and stores what waits before it returns.
	Write(ctx context.Context, group int, lease journal.Lease) error
}

// Views are the hubs' streams, which are written from the journals (views.Views).
type Views interface {
	// Run writes the views of a group until ctx ends, and then what they lack.
	Run(ctx context.Context, group int) error
	// Begin is journal.Lease.Begin.
	Begin(ctx context.Context, hub domain.HubID) (ended domain.EpochID, err error)
}

// Bridge serves the hubs of the groups of shards whose leases its replica holds.
type Bridge struct {
	cfg       Config
	conns     *streams.Conns
	journals  Journals
	views     Views
	logs      ingest.Logs
	directory ingest.Directory
	ownership ingest.Ownership
	view      *presence.View
	leases    *lease.Keeper
	metrics   *ingest.Metrics
	faults    *ingest.FaultRegistry

	mu sync.Mutex
	// ready counts the parts of each shard whose subscriptions the broker has confirmed.
	ready map[int]int
	// serving holds the shards that are served.
	serving map[int]*ingest.Shard
}

// shardParts is the number of parts of a served shard: an ingest.Shard and a presence.Watcher.
const shardParts = 2

// New returns a bridge over the broker's connections and buckets. It writes the journals and the
// views, appends to the hubs' logs, starts their new epochs in directory, and looks up the owners
// of hubs in ownership, which must be loaded when Run begins. view.Run must run while the bridge
// does. The error is cfg.Validate's.
func New(
	conns *streams.Conns, buckets *streams.Buckets, journals Journals, views Views, logs ingest.Logs,
	directory ingest.Directory, ownership ingest.Ownership, view *presence.View, cfg Config,
) (*Bridge, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("hubbridge", cfg); err != nil {
		return nil, err
	}
	leases, err := lease.NewKeeper(lease.Config{
		Conn:      conns.Cloud,
		Bucket:    buckets.Leases,
		ReplicaID: cfg.ReplicaID,
		Groups:    journals.Groups(),
		Logger:    cfg.Logger,
		Metrics:   cfg.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return &Bridge{
		cfg:       cfg,
		conns:     conns,
		journals:  journals,
		views:     views,
		logs:      logs,
		directory: directory,
		ownership: ownership,
		view:      view,
		leases:    leases,
		metrics:   ingest.NewMetrics(cfg.Metrics),
		faults:    ingest.NewFaults(ingest.FaultConfig{Now: cfg.Now, Logger: cfg.Logger, Metrics: cfg.Metrics}),
		ready:     make(map[int]int),
		serving:   make(map[int]*ingest.Shard),
	}, nil
}

// Run serves hubs until ctx ends, handles the messages already received, which takes a few seconds
// at most, and returns ctx's error. Any other error means that a shard could not be served, or that
// the leases could not be watched.
func (b *Bridge) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	var watchers sync.WaitGroup
	watchers.Go(func() { _ = b.faults.Run(watching) }) // the context's error, as below
	if b.cfg.Budget != nil {
		watchers.Go(func() { _ = b.cfg.Budget.Run(watching) })
	}
	defer watchers.Wait()
	defer stop()
	return b.leases.RunFenced(ctx, b.serve)
}

// serve serves one group until its lease ends. It starts the writer of the journal, then the views,
// then the shards, and stops them in reverse: the shards store what they have received, and the
// views get it. When the lease is lost, or another replica writes the journal, all end at once.
func (b *Bridge) serve(ctx context.Context, group int, term *lease.Term) error {
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	ready := make(chan struct{})
	terms := journal.Lease{
		Held: term.Held, Ready: sync.OnceFunc(func() { close(ready) }), Begin: b.views.Begin,
	}
	writer := start(serving, fail, func(ctx context.Context) error {
		err := b.journals.Write(ctx, group, terms)
		if errors.Is(err, journal.ErrFenced) {
			return lease.ErrLost
		}
		return err
	})
	select {
	case <-ready:
	case <-serving.Done():
		return writer.stop()
	}
	views := start(serving, fail, func(ctx context.Context) error { return b.views.Run(ctx, group) })
	err := b.serveShards(serving, group, term)
	return errors.Join(err, views.stop(), writer.stop())
}

// part is a part of a served group that goes on after the group's context has ended, until it is
// stopped.
type part struct {
	cancel context.CancelCauseFunc
	ended  chan error
}

// start starts a part. It calls fail if the part ends by itself, and ends the part if the lease is
// lost.
func start(ctx context.Context, fail func(error), run func(context.Context) error) part {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	keep := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), lease.ErrLost) {
			cancel(lease.ErrLost)
		}
	})
	p := part{cancel, make(chan error, 1)}
	go func() {
		defer keep()
		err := run(running)
		if err != nil {
			fail(err)
		}
		p.ended <- err
	}()
	return p
}

// stop ends the part and returns its error.
func (p part) stop() error {
	p.cancel(nil)
	return <-p.ended
}

// serveShards serves the shards of a group until ctx ends or a shard cannot be served.
func (b *Bridge) serveShards(ctx context.Context, group int, term *lease.Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	waiting := sync.OnceValue(b.waiting)
	var shards errgroup.Group
	for shard := range b.conns.Shards {
		if b.journals.GroupOf(shard) != group {
			continue
		}
		shards.Go(func() error {
			err := b.serveShard(ctx, shard, term, func() []domain.HubID { return waiting()[shard] })
			if err != nil {
				cancel(err)
			}
			return err
		})
	}
	return shards.Wait()
}

// serveShard serves one shard until ctx ends. waiting is ingest.Config.Waiting.
func (b *Bridge) serveShard(
	ctx context.Context, shard int, term *lease.Term, waiting func() []domain.HubID,
) error {
	acks, err := b.conns.OpenFencedConn(ctx, shard, term.Serving)
	if err != nil {
		return fmt.Errorf("shard %d: %w", shard, err)
	}
	// Close returns once the broker has every ack, so the lease is released after the last ack.
	// When the lease is lost, the remaining acks are dropped (see the package documentation).
	defer acks.Close()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), lease.ErrLost) {
			acks.Cut()
		}
	})()
	var leaving sync.WaitGroup
	defer leaving.Wait()
	left, stopLeaving := context.WithCancel(ctx)
	defer stopLeaving()
	leaving.Go(func() { acks.LeaveIsolated(left, b.cfg.Isolated) })
	stopAnswers, err := b.faults.Serve(b.conns, shard)
	if err != nil {
		return err
	}
	defer stopAnswers()
	logger := b.cfg.Logger.With("shard", shard)
	served := ingest.NewShard(b.shardConfig(shard, acks, term, waiting, logger))
	watcher := presence.NewWatcher(b.conns.Sys, shard, len(b.conns.Shards), b.view, served.Observe,
		b.cfg.RoutesChanged, logger)
	b.mu.Lock()
	b.serving[shard] = served
	b.mu.Unlock()
	defer b.stopServing(shard)
	// A check that is requested after the watcher has ended is left to the shard's next holder.
	serve := func(ctx context.Context, ready func()) error {
		return served.Run(ctx, watcher.Check, ready)
	}
	return runParts(ctx, shard, func() { b.partReady(shard) }, serve, watcher.Run)
}

// shardConfig returns the configuration of a served shard.
func (b *Bridge) shardConfig(
	shard int, acks *streams.FencedConn, term *lease.Term, waiting func() []domain.HubID,
	logger *slog.Logger,
) ingest.Config {
	return ingest.Config{
		Logs:        b.logs,
		Directory:   b.directory,
		Ownership:   b.ownership,
		Presence:    jsapi.NewBucket(b.conns.Cloud, presence.BucketName),
		Checkpoints: jsapi.NewBucket(b.conns.Cloud, ingest.CheckpointBucket),
		Conn:        b.conns.Shards[shard],
		Acks:        acks,
		LeaseHeld:   term.Held,
		Serving:     term.Serving,
		Waiting:     waiting,
		Admit:       b.cfg.Admit,
		Budget:      b.cfg.Budget,
		Retention:   b.cfg.Retention,
		Now:         b.cfg.Now,
		Logger:      logger,
		Metrics:     b.metrics,
		Faults:      b.faults,
		Tracer:      b.cfg.Tracer,
	}
}

// waitedFor is how recent the last record of a hub must be for the hub to be among those that
// probably have sent something while nobody served them.
const waitedFor = time.Minute

// waiting returns the hubs of each shard that are online and had a record lately.
func (b *Bridge) waiting() map[int][]domain.HubID {
	since, hubs := b.cfg.Now().Add(-waitedFor), map[int][]domain.HubID{}
	for _, p := range b.view.All() {
		if tip, ok := b.journals.Tip(p.HubID); p.Online && ok && tip.Time.After(since) {
			shard := streams.ShardOf(p.HubID, len(b.conns.Shards))
			hubs[shard] = append(hubs[shard], p.HubID)
		}
	}
	return hubs
}

// runParts runs the parts of a shard until ctx ends or a part fails, and returns the first error.
//
// The parts get ctx, not an errgroup's context: how a part ends depends on the cause of ctx.
func runParts(
	ctx context.Context, shard int, ready func(),
	parts ...func(ctx context.Context, ready func()) error,
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group errgroup.Group
	for _, part := range parts {
		group.Go(func() error {
			if err := part(ctx, ready); err != nil && ctx.Err() == nil {
				cancel(err)
				return fmt.Errorf("shard %d: %w", shard, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// partReady counts a part of a shard that has subscribed.
func (b *Bridge) partReady(shard int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready[shard]++
}

// stopServing removes a shard that is no longer served.
func (b *Bridge) stopServing(shard int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.ready, shard)
	delete(b.serving, shard)
	b.faults.Forget(func(hub domain.HubID) bool {
		return streams.ShardOf(hub, len(b.conns.Shards)) == shard
	})
}

// ReportFault notes what the broker reports that a hub does wrong. It does nothing when this bridge
// does not serve the hub.
func (b *Bridge) ReportFault(hub domain.HubID, reason ingest.FaultReason, detail string) {
	b.mu.Lock()
	serving := b.serving[streams.ShardOf(hub, len(b.conns.Shards))] != nil
	b.mu.Unlock()
	if serving {
		b.faults.Report(hub, reason, detail)
	}
}

// Serves reports whether this bridge serves a hub.
func (b *Bridge) Serves(hub domain.HubID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.serving[streams.ShardOf(hub, len(b.conns.Shards))] != nil
}

// CountRequest counts a request of this process to a hub, for the log line at the end of the hub's
// session. It does nothing when this bridge does not serve the hub.
func (b *Bridge) CountRequest(hub domain.HubID) {
	b.mu.Lock()
	shard := b.serving[streams.ShardOf(hub, len(b.conns.Shards))]
	b.mu.Unlock()
	if shard != nil {
		shard.CountRequest(hub)
	}
}

// Ready returns nil once this replica serves every shard of its share, and otherwise an error that
// names what is missing.
func (b *Bridge) Ready() error {
	select {
	case <-b.view.Loaded():
	default:
		return errors.New("bridge: the presence of hubs is not loaded yet")
	}
	share := b.leases.Share()
	if share == nil {
		return errors.New("bridge: the share of this replica is not known yet")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	missing, wanted := 0, 0
	for shard := range b.conns.Shards {
		if !slices.Contains(share, b.journals.GroupOf(shard)) {
			continue
		}
		wanted++
		if b.ready[shard] < shardParts {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("bridge: %d of %d shards are not served yet", missing, wanted)
	}
	return nil
}
