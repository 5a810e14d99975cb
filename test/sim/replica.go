package sim

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/hubbridge"
	"hubcloud/hubbridge/commands"
	"hubcloud/hubbridge/identity"
	"hubcloud/hubbridge/presence"
	"hubcloud/projections/access"
	"hubcloud/streams"
	"hubcloud/streams/broker"
	"hubcloud/streams/directory"
	"hubcloud/streams/feed"
	"hubcloud/streams/feed/orgfeed"
	"hubcloud/streams/journal"
	"hubcloud/streams/once"
	"hubcloud/streams/replicas"
	"hubcloud/streams/views"
)

const (
	copies    = 3
	retention = 24 * time.Hour
	// ringEvents is how many events a log's tail has in memory: few, so that readers fall behind.
	ringEvents = 8
	// restartPause is the pause of the supervisor before it starts a replica again.
	restartPause = time.Second
)

// Replica is a process of the service: everything between the broker and the HTTP handlers, wired
// as cmd/hubcloud does it. It has no database: the index of hubs is read from the directory.
type Replica struct {
	host    string
	world   *World
	parts   atomic.Pointer[parts] // nil while the replica is not ready
	ahead   atomic.Int64          // how far its clock is ahead, in nanoseconds
	stop    context.CancelFunc
	stopped chan struct{}
}

// parts are what clients of a replica call.
type parts struct {
	ctx     context.Context // ends with the replica's process
	confirm func(context.Context) error
	conns   []*nats.Conn
	// awaitRunning waits while the process is stopped.
	awaitRunning func()
	shards       *streams.Conns
	journal      *journal.Journal
	index        *access.Index
	keys         *once.Keys
	logs         *feed.Logs
	feed         *orgfeed.Feed
	presence     *presence.View
	bridge       *hubbridge.Bridge
	leases       *leases
	directory    *directory.Service
	enrolment    *identity.Enrolment
	commands     *commands.Commands
}

// now is the time by the clock of the replica's host.
func (r *Replica) now() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) }

// Start starts the replica, also after Kill.
func (r *Replica) Start() {
	r.world.Network.Boot(r.host)
	ctx, stop := context.WithCancel(context.Background())
	r.stop, r.stopped = stop, make(chan struct{})
	go func() {
		defer close(r.stopped)
		for ctx.Err() == nil {
			err := r.serve(ctx)
			if ctx.Err() == nil {
				r.world.Trace.Add("replica "+r.host, fmt.Sprint("ended: ", err))
			}
			_ = sleep(ctx, restartPause)
		}
	}()
}

// Kill ends the process: nothing that it still does reaches anybody.
func (r *Replica) Kill() {
	r.world.Network.Kill(r.host)
	r.stop()
	<-r.stopped
}

// Stop ends the process in order.
func (r *Replica) Stop() {
	r.stop()
	<-r.stopped
}

// serve runs the replica until ctx ends or a part fails.
func (r *Replica) serve(ctx context.Context) error {
	w := r.world
	logger := slog.New(slog.NewTextHandler(
		traceWriter{"replica " + r.host, w.Trace},
		&slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutTime},
	))
	var conns, reads *streams.Conns
	for _, c := range []**streams.Conns{&conns, &reads} {
		var err error
		*c, err = streams.Connect(
			ctx, w.Brokers.Credentials, streams.WithLog(logger),
			nats.SetCustomDialer(w.Network.Dialer(r.host)),
		)
		if err != nil {
			return err
		}
		defer (*c).Close()
	}
	if err := broker.DeclareMQTTStreams(ctx, conns, copies); err != nil {
		return err
	}
	buckets, err := streams.OpenBuckets(ctx, conns, copies)
	if err != nil {
		return err
	}
	log, err := directory.Open(ctx, conns, copies)
	if err != nil {
		return err
	}
	journals, err := journal.New(journal.Config{
		Conn: conns.Cloud, Shards: shards, Groups: groups, Retention: retention, Replicas: copies,
		Logger: logger, Now: r.now,
	})
	if err != nil {
		return err
	}
	journals.Subscribe(w.noteCommits)
	if err := journals.Open(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	defer func() { r.parts.Store(nil) }()
	run := func(name string, f func(context.Context) error) {
		group.Go(func() error {
			if err := f(ctx); ctx.Err() == nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}

	index := access.New(access.Config{Directory: log, Logger: logger})
	run("access", index.Run)
	view := presence.NewView(conns.Cloud, buckets.Presence, logger, nil)
	run("presence", view.Run)
	barrier := replicas.NewBarrier(conns, r.id(), logger)
	run("barrier", func(ctx context.Context) error { return barrier.Serve(ctx, index.WaitFor) })
	reach := replicas.NewReach(logger, conns, reads)
	run("reach", reach.Run)
	run("evictor", identity.NewEvictor(conns, reach, logger).Run)
	freshness, err := replicas.NewFreshness(replicas.FreshnessConfig{
		Refresh: index.Refresh, Registered: barrier.Registered, CutOff: reach.CutOff,
		Clustered: conns.Clustered, Logger: logger,
	})
	if err != nil {
		return err
	}
	run("freshness", freshness.Run)

	p := &parts{
		ctx: ctx, presence: view, confirm: freshness.Confirm,
		shards: conns, journal: journals, index: index,
		conns:        append(conns.All(), reads.All()...),
		awaitRunning: func() { w.Network.AwaitRunning(r.host) },
	}
	epoch := func(hub domain.HubID) (domain.Epoch, bool) {
		owner, ok := index.Hub(hub)
		return owner.Epoch, ok
	}
	p.logs, err = feed.New(conns, feed.Config{
		Journal: journals, Retention: retention, Reads: reads, Epoch: epoch,
		Refresh: index.Refresh, Lost: reach.Lost, Logger: logger, Now: r.now, RingEvents: ringEvents,
	})
	if err != nil {
		return err
	}
	defer p.logs.Close()
	p.feed, err = orgfeed.New(orgfeed.Config{
		Logs: p.logs, Hubs: index, Journal: journals, Retention: retention,
		RingEvents: 4 * ringEvents, Logger: logger, Now: r.now,
	})
	if err != nil {
		return err
	}
	defer p.feed.Close()
	p.directory = directory.NewService(log, directory.ServiceConfig{
		Environment: domain.EnvironmentLive, AwaitReplicas: barrier.Wait, Presence: view, Logs: p.logs,
		Now: r.now,
	})
	written, err := views.New(views.Config{
		Conns: conns, Journal: journals, Retention: retention, ServerStarted: reach.ServerStarted,
		IsReleased: func(context.Context, domain.HubID) (bool, error) { return false, nil },
		LostEnd: func(
			ctx context.Context, hub domain.HubID, kept uint64,
		) (domain.EpochID, error) {
			return p.directory.RestoreLog(
				ctx, domain.Origin{Actor: domain.Actor{Kind: domain.ActorService}}, hub, kept,
			)
		},
		Logger: logger, Now: r.now,
	})
	if err != nil {
		return err
	}
	run("journals", journals.Run)
	run("hub logs", p.logs.Run)
	run("feeds", p.feed.Run)
	p.leases = &leases{Journal: journals, held: map[int]func() bool{}}
	p.bridge, err = hubbridge.New(
		conns, buckets, p.leases, written, p.logs, p.directory, index, view, hubbridge.Config{
			ReplicaID: r.id(), Retention: retention, RoutesChanged: reach.RoutesChanged,
			Isolated: reach.Isolated, Logger: logger, Now: r.now,
		},
	)
	if err != nil {
		return err
	}
	select {
	case <-index.Loaded():
	case <-ctx.Done():
		return group.Wait()
	}
	run("bridge", p.bridge.Run)

	orgOf := func(hub domain.HubID) string { owner, _ := index.Hub(hub); return owner.OrgID }
	caller, err := commands.NewCaller(conns, view, commands.CallerConfig{Logger: logger})
	if err != nil {
		return err
	}
	defer caller.Close()
	p.keys, err = once.New(conns, once.Config{ReplicaID: r.id(), Logger: logger, Now: r.now})
	if err != nil {
		return err
	}
	defer p.keys.Close()
	calls := commands.NewCallPool(nil, commands.CallLimits)
	p.commands, err = commands.New(
		p.logs, commands.NewDevices(caller, calls, orgOf),
		commands.Config{Keys: p.keys, Calls: calls, Logger: logger, Now: r.now},
	)
	if err != nil {
		return err
	}
	defer p.closeCommands()
	p.enrolment, err = identity.NewEnrolment(identity.EnrolmentConfig{
		Authority: w.Brokers.Authority, Directory: p.directory, Logger: logger, Now: r.now,
		Broker: func() string { return fmt.Sprintf("mqtts://%s:%d", brokerHosts[0], mqttPort) },
	})
	if err != nil {
		return err
	}
	callout, err := identity.NewCallout(identity.CalloutConfig{
		Conns: conns, Credentials: w.Brokers.Credentials, Directory: p.directory,
		Confirm: freshness.Confirm, Logger: logger, Now: r.now,
	})
	if err != nil {
		return err
	}
	run("callout", callout.Run)
	r.parts.Store(p)
	return group.Wait()
}

// leases notes what a replica knows of its leases.
type leases struct {
	*journal.Journal
	mu   sync.Mutex
	held map[int]func() bool
}

// Write implements hubbridge.Journals.
func (l *leases) Write(ctx context.Context, group int, lease journal.Lease) error {
	l.mu.Lock()
	l.held[group] = lease.Held
	l.mu.Unlock()
	return l.Journal.Write(ctx, group, lease)
}

// holds reports whether the replica is certain to hold a group.
func (l *leases) holds(group int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[group]
	return held != nil && held()
}

// closeCommands ends the commands under way, within a second.
func (p *parts) closeCommands() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	p.commands.Close(ctx)
}

// id is the replica's name in leases and heartbeats.
func (r *Replica) id() string { return "replica-" + strings.ReplaceAll(r.host, ".", "-") }

// traceWriter writes the lines of a logger to the trace.
type traceWriter struct {
	who   string
	trace *Trace
}

// Write implements io.Writer.
func (w traceWriter) Write(line []byte) (int, error) {
	w.trace.Add(w.who, strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// withoutTime drops the time of log records: the trace has it.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
