package virtualhub

import (
	"context"
	"errors"
	"fmt"
	"hubcloud/hubbridge/kit/hub"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// Fleet is many hubs in one process. Make it with NewFleet.
type Fleet struct {
	cfg     FleetConfig
	members []*member
	latency histogram
}

// FleetStats are the counters of a fleet since it was made.
type FleetStats struct {
	// Hubs is the number of hubs. Enrolled of them have a certificate, and Connected of them have a
	// connection on which the cloud has acknowledged the hello.
	Hubs, Enrolled, Connected int
	// Emitted counts the events that were emitted, Acked those that were acknowledged, and Resent
	// those that were sent again, once per resend.
	Emitted, Acked, Resent uint64
	// Requests counts the requests that were answered, Disconnections the connections that were
	// lost.
	Requests, Disconnections uint64
	// AckP50 and AckP99 are quantiles of the time from an event's emission to its ack, too long by
	// at most 13 %; 0 before the first ack.
	AckP50, AckP99 time.Duration
}

// NewFleet makes a fleet.
func NewFleet(cfg FleetConfig) (*Fleet, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	f := &Fleet{cfg: cfg}
	slots := semaphore.NewWeighted(parallel)
	for i, credentials := range cfg.Hubs {
		m := &member{fleet: f, wake: make(chan struct{}, 1)}
		var err error
		if m.Hub, err = New(Config{
			Config: hub.Config{
				EnrollURL: cfg.EnrollURL, Serial: credentials.Serial, Secret: credentials.Secret,
				Batch: cfg.messageBatch(), HTTPClient: cfg.HTTPClient, Slots: slots,
				OnAck: m.countAck, Logger: cfg.Logger,
			},
			Devices: []DeviceSpec{{Kind: "outlet"}}, Quiet: true,
		}); err != nil {
			return nil, errors.Join(fmt.Errorf("hub %d: %w", i+1, err), f.close())
		}
		f.members = append(f.members, m)
	}
	return f, nil
}

func (f *Fleet) close() (err error) {
	for _, m := range f.members {
		err = errors.Join(err, m.Close())
	}
	return err
}

// Run runs the fleet until ctx ends, and then returns nil. It may be called once.
func (f *Fleet) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, m := range f.members {
		group.Go(func() error { return m.Run(ctx) })
		if f.cfg.Rate == 0 {
			group.Go(func() error { m.saturate(ctx); return nil })
		}
	}
	if f.cfg.Rate > 0 && len(f.members) > 0 {
		group.Go(func() error { f.emitRate(ctx); return nil })
	}
	return group.Wait()
}

// WaitConnected waits until every hub has been connected. Its error is the cause of ctx.
func (f *Fleet) WaitConnected(ctx context.Context) error {
	for _, m := range f.members {
		if err := m.WaitConnected(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stats returns the present counters.
func (f *Fleet) Stats() FleetStats {
	s := FleetStats{
		Hubs: len(f.members), AckP50: f.latency.quantile(0.5), AckP99: f.latency.quantile(0.99),
	}
	for _, m := range f.members {
		one := m.Status()
		if one.Enrolled {
			s.Enrolled++
		}
		if one.Connected {
			s.Connected++
		}
		s.Emitted += one.Newest
		s.Acked += one.Acked
		s.Resent += one.Resent
		s.Requests += one.Requests
		s.Disconnections += one.Disconnections
	}
	return s
}
