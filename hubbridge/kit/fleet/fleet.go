package fleet

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"hubcloud/hubbridge/kit/hub"
	"hubcloud/hubbridge/kit/hub/notify"
)

// Fleet is many hubs in one process. Make it with New.
type Fleet struct {
	cfg          Config
	members      []*member
	pacers       []*pacer
	connectSlots *semaphore.Weighted // bounds enrolments and connects
	hubConnected notify.Broadcast    // sent when a hub is connected

	enrolled, connected      atomic.Int64
	emitted, resent, acked   atomic.Uint64
	requests, disconnections atomic.Uint64
	latency                  histogram
}

// Stats are the counters of a fleet since it was made.
type Stats struct {
	// Hubs is the number of hubs. Enrolled of them have a certificate, and Connected of them have a
	// connection on which the cloud has acknowledged the hello.
	Hubs, Enrolled, Connected int
	// Emitted counts the events that were emitted, Acked those that were acknowledged, and Resent
	// those that were sent again, once per resend.
	Emitted, Acked, Resent uint64
	// Requests counts the requests that were answered, Disconnections the connections that were
	// lost.
	Requests, Disconnections uint64
	// AckP50, AckP99 and AckMax are quantiles of the time from an event's emission to its ack, too
	// long by at most 13 %; 0 before the first ack.
	AckP50, AckP99, AckMax time.Duration
}

// New makes a fleet.
func New(cfg Config) (*Fleet, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Fleet{cfg: cfg, connectSlots: semaphore.NewWeighted(int64(cfg.Parallel))}
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

// Run runs the fleet until ctx ends, and then returns nil. It may be called once.
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

// WaitConnected waits until every hub is connected. Its error is the cause of ctx.
func (f *Fleet) WaitConnected(ctx context.Context) error {
	return f.hubConnected.Wait(ctx, func() bool {
		return int(f.connected.Load()) == len(f.members)
	})
}

// Stats returns the present counters.
func (f *Fleet) Stats() Stats {
	return Stats{
		Hubs: len(f.members), Enrolled: int(f.enrolled.Load()), Connected: int(f.connected.Load()),
		Emitted: f.emitted.Load(), Acked: f.acked.Load(), Resent: f.resent.Load(),
		Requests: f.requests.Load(), Disconnections: f.disconnections.Load(),
		AckP50: f.latency.quantile(0.5), AckP99: f.latency.quantile(0.99),
		AckMax: f.latency.quantile(1),
	}
}

// ResetLatency forgets the ack latencies so far, for instance between warm-up and measurement.
func (f *Fleet) ResetLatency() { f.latency.reset() }

// Emit emits events from the hub with the given index in Config.Hubs, in addition to the configured
// load. It returns the number of the last event.
func (f *Fleet) Emit(index int, events ...hub.Event) (last uint64, err error) {
	if index < 0 || index >= len(f.members) {
		return 0, fmt.Errorf("hub: is %d, must be 0 to %d", index, len(f.members)-1)
	}
	return f.members[index].emit(events)
}
