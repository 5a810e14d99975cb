package virtualhub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"hubcloud/hubbridge/protocol"
)

// Credentials are a hub's for its enrolment.
type Credentials struct {
	Serial string `json:"serial"`
	Secret string `json:"secret"`
}

// FleetConfig says what a fleet is. EnrollURL and Hubs are needed.
type FleetConfig struct {
	EnrollURL string
	Hubs      []Credentials
	// Devices are what each hub has; they make no readings by themselves, but answer commands. Nil:
	// one outlet.
	Devices []DeviceSpec

	// Rate is how many events a second each hub emits; 0: none. The hubs are spread over the
	// interval.
	Rate float64
	// Saturate makes each hub emit as fast as the cloud acknowledges: Depth messages of Batch
	// events are always on their way.
	Saturate bool
	// Depth is for Saturate. Default 2; Depth × Batch is at most 2,000.
	Depth int
	// Batch is how many events are emitted together, in one message: 1 to 500, default 1. With a
	// Rate, every Batch/Rate seconds.
	Batch int
	// Padding makes each event larger by that many bytes.
	Padding int
	// Capacity is the most events that each hub holds. Default 10,000.
	Capacity int

	// Parallel is how many hubs enrol and connect at a time. Default 16.
	Parallel int
	// HTTPClient is used to enrol. Default: a client with a time-out of 30 s.
	HTTPClient *http.Client
	// KeepAlive of the connections, in whole seconds. Default 30 s.
	KeepAlive time.Duration
	// BackoffMin and BackoffMax are as in Config.
	BackoffMin, BackoffMax time.Duration
	// Log gets what the fleet does. Default: nothing.
	Log *slog.Logger
}

// Fleet is many hubs in one process, for load. A hub of it has one goroutine, which reads, and is
// otherwise driven by a few that all share; it has no faults, and everything in memory. It enrols
// once, and again only when the broker refuses it for the first time.
type Fleet struct {
	cfg     FleetConfig
	members []*member
	pacers  []*pacer
	gate    *semaphore.Weighted // enrolling and connecting
	ready   broadcast

	enrolled, connected      atomic.Int64
	emitted, resent, acked   atomic.Uint64
	requests, disconnections atomic.Uint64
	latency                  histogram
}

// FleetStats is what a fleet has done since it began.
type FleetStats struct {
	// Hubs, and how many of them have a certificate, and a connection on which the cloud has
	// answered their hello.
	Hubs, Enrolled, Connected int
	// Emitted is how many events the hubs have numbered, Acked how many of them the cloud has
	// acknowledged, Resent how many were sent again.
	Emitted, Acked, Resent uint64
	// Requests is how many requests were answered, Disconnections how many connections were lost.
	Requests, Disconnections uint64
	// AckP50, AckP99 and AckMax are the times from an event's number to its ack, within 9 %; 0
	// before the first ack.
	AckP50, AckP99, AckMax time.Duration
}

// NewFleet makes a fleet.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	fill(&cfg.Batch, 1)
	fill(&cfg.Depth, 2)
	fill(&cfg.Parallel, 16)
	if cfg.Devices == nil {
		cfg.Devices = []DeviceSpec{{Kind: "outlet"}}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	switch {
	case cfg.Rate < 0 || cfg.Rate > 0 && cfg.Saturate:
		return nil, errors.New("a fleet has a rate, or it saturates, or neither")
	case cfg.Batch < 0 || cfg.Batch > protocol.MaxMessageEvents:
		return nil, fmt.Errorf("batch must be from 1 to %d", protocol.MaxMessageEvents)
	case cfg.Depth < 0 || cfg.Depth*cfg.Batch > protocol.MaxUnacknowledged:
		return nil, fmt.Errorf("depth × batch must be from 1 to %d", protocol.MaxUnacknowledged)
	case cfg.Padding < 0 || cfg.Padding > protocol.MaxEventBytes/2:
		return nil, fmt.Errorf("padding must be from 0 to %d", protocol.MaxEventBytes/2)
	case cfg.Parallel < 0:
		return nil, errors.New("parallel must be above 0")
	}
	f := &Fleet{cfg: cfg, gate: semaphore.NewWeighted(int64(cfg.Parallel))}
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		f.pacers = append(f.pacers, newPacer())
	}
	for i, hub := range cfg.Hubs {
		m, err := newMember(f, hub, f.pacers[i%len(f.pacers)])
		if err != nil {
			return nil, fmt.Errorf("hub %d: %w", i+1, err)
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

// Run runs the fleet until ctx ends, and returns nil then. It can be called once.
func (f *Fleet) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range f.pacers {
		group.Go(func() error { p.run(ctx); return nil })
	}
	for _, m := range f.members {
		group.Go(func() error { m.run(ctx); return nil })
	}
	return group.Wait()
}

// WaitConnected waits until every hub is connected. Its error is the context's.
func (f *Fleet) WaitConnected(ctx context.Context) error {
	return f.ready.wait(ctx, func() bool { return int(f.connected.Load()) == len(f.members) })
}

// Stats is what the fleet has done so far.
func (f *Fleet) Stats() FleetStats {
	return FleetStats{
		Hubs: len(f.members), Enrolled: int(f.enrolled.Load()), Connected: int(f.connected.Load()),
		Emitted: f.emitted.Load(), Acked: f.acked.Load(), Resent: f.resent.Load(),
		Requests: f.requests.Load(), Disconnections: f.disconnections.Load(),
		AckP50: f.latency.quantile(
			0.5,
		), AckP99: f.latency.quantile(0.99), AckMax: f.latency.quantile(1),
	}
}

// ResetLatency forgets the ack latencies so far, as between warming up and measuring.
func (f *Fleet) ResetLatency() { f.latency.reset() }

// Emit makes one hub, by its place in FleetConfig.Hubs, emit events beside what it emits anyway.
func (f *Fleet) Emit(hub int, events ...Event) (last uint64, err error) {
	if hub < 0 || hub >= len(f.members) {
		return 0, fmt.Errorf("no hub %d", hub)
	}
	return f.members[hub].emit(events)
}
