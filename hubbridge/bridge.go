package hubbridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge/ingest"
	"hubcloud/hubbridge/lease"
	"hubcloud/hubbridge/presence"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// Config is what a Bridge needs beside what it works on.
type Config struct {
	// ReplicaID ([A-Za-z0-9_-]+) names this replica; it stays the same over restarts, and no other
	// replica has it.
	ReplicaID string
	// Retention is how long the hubs' event logs keep events.
	Retention time.Duration
	// Admit is asked for room on the disk before anything that a hub sent is stored; its error
	// withholds the ack. Nil admits everything.
	Admit func(bytes int) error
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log is where trouble goes; nil is the default logger.
	Log *slog.Logger
	// Metrics gets the bridge's metrics; nil for none.
	Metrics prometheus.Registerer
	// Tracer begins a span for each batch of a hub's events; the zero value none.
	Tracer telemetry.Tracer
}

// Bridge looks after the hubs of the shards that its replica has leases for.
type Bridge struct {
	cfg     Config
	conns   *streams.Conns
	logs    ingest.Logs
	dir     ingest.Directory
	hubs    ingest.Ownership
	view    *presence.View
	leases  *lease.Keeper
	metrics *ingest.Metrics

	mu sync.Mutex
	// ready counts the parts of each shard that hear what they should.
	ready map[int]int
	// serving are the shards that are looked after.
	serving map[int]*ingest.Shard
}

// shardParts is how many parts serve a shard: one hears its hubs, one the broker.
const shardParts = 2

// New makes a bridge over the broker's connections and buckets: it writes to the hubs' logs, begins
// them anew in the directory, and looks up in hubs who has a hub, which must have everything that
// the directory held when Run begins. view must run beside it.
func New(
	conns *streams.Conns, buckets *streams.Buckets, logs ingest.Logs, dir ingest.Directory,
	hubs ingest.Ownership, view *presence.View, cfg Config,
) *Bridge {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Bridge{
		cfg: cfg, conns: conns, logs: logs, dir: dir, hubs: hubs, view: view,
		leases: lease.NewKeeper(
			conns.Cloud, buckets.Leases, cfg.ReplicaID, len(conns.Shards), cfg.Log, cfg.Metrics,
		),
		metrics: ingest.NewMetrics(cfg.Metrics),
		ready:   make(map[int]int), serving: make(map[int]*ingest.Shard),
	}
}

// Run looks after hubs until ctx ends, finishes what it has received within some seconds and
// returns ctx's error. Any other error means that a shard could not be served, or that the leases
// could not be followed.
func (b *Bridge) Run(ctx context.Context) error { return b.leases.Run(ctx, b.serve) }

// serve looks after one shard, for as long as its lease is held.
func (b *Bridge) serve(ctx context.Context, shard int, held func() bool) error {
	acks, err := b.conns.OpenFencedConn(ctx, shard, held)
	if err != nil {
		return fmt.Errorf("shard %d: %w", shard, err)
	}
	// An orderly end gives the lease away once the broker has every ack. After a lease that was
	// lost none must arrive any more: the next holder has said more by then.
	defer acks.Close()
	defer context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), lease.ErrLost) {
			acks.Cut()
		}
	})()
	var hubs *ingest.Shard
	watcher := presence.NewWatcher(b.conns.Sys, shard, len(b.conns.Shards), b.view,
		func(hub domain.HubID, o presence.Observation) { hubs.Observe(hub, o) }, b.cfg.Log)
	hubs = ingest.NewShard(ingest.Config{
		Logs: b.logs, Directory: b.dir, Ownership: b.hubs,
		Presence: jsapi.NewBucket(b.conns.Cloud, presence.BucketName),
		Ledger:   jsapi.NewBucket(b.conns.Cloud, ingest.LedgerName),
		Conn:     b.conns.Shards[shard],
		Acks:     acks,
		Held:     held,
		// What is asked of the watcher once it has ended is left to the shard's next holder.
		Check: watcher.Check, Admit: b.cfg.Admit,
		Retention: b.cfg.Retention, Now: b.cfg.Now, Log: b.cfg.Log.With("shard", shard),
		Metrics: b.metrics, Tracer: b.cfg.Tracer,
	})
	b.mu.Lock()
	b.serving[shard] = hubs
	b.mu.Unlock()
	defer b.ended(shard)
	ready := func() { b.began(shard) }
	// The context's cause must reach the shard: it says how to end. So it is not the group's, and
	// the first error ends the other by hand.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts errgroup.Group
	run := func(part func(context.Context, func()) error) {
		parts.Go(func() error {
			if err := part(ctx, ready); err != nil && ctx.Err() == nil {
				cancel(err)
				return fmt.Errorf("shard %d: %w", shard, err)
			}
			return nil
		})
	}
	run(hubs.Run)
	run(watcher.Run)
	return parts.Wait()
}

func (b *Bridge) began(shard int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ready[shard]++
}

func (b *Bridge) ended(shard int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.ready, shard)
	delete(b.serving, shard)
}

// Asked hears that this process asks a hub for something, for the line at the end of the hub's
// session. It is for the bridge that looks after the hub; any other passes it over.
func (b *Bridge) Asked(hub domain.HubID) {
	b.mu.Lock()
	shard := b.serving[streams.ShardOf(hub, len(b.conns.Shards))]
	b.mu.Unlock()
	if shard != nil {
		shard.Asked(hub)
	}
}

// Ready gives nil once this replica looks after every shard that it should, and says what is
// missing otherwise.
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
	missing := 0
	for _, shard := range share {
		if b.ready[shard] < shardParts {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf(
			"bridge: %d of its %d shards are not looked after yet", missing, len(share),
		)
	}
	return nil
}
