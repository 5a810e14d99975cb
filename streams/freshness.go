package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
)

const (
	// freshFor is how long a confirmation that the view of the directory is complete may be acted
	// upon.
	freshFor = time.Second
	// freshEvery is the pause between two confirmations: several may fail before the last one runs
	// out.
	freshEvery = 250 * time.Millisecond
	// freshPause is the least pause between two of them.
	freshPause = 20 * time.Millisecond
	// freshTimeout bounds one confirmation.
	freshTimeout = 2 * time.Second
	// freshPatience is how long a request waits for a confirmation while the broker can be reached:
	// a cluster that lost a server has new leaders within ten seconds.
	freshPatience = askPatience
	// freshSettle is for how long a view must be confirmed after a silence in a cluster.
	freshSettle = time.Second
)

// Freshness tells whether this process may act by its view of the directory, which it holds in
// memory. A process that is cut off from the broker does not hear that a key is revoked, so every
// view is confirmed several times a second, and a confirmation is good for a second. Barrier.Wait
// counts on it: a replica that does not answer has stopped acting by an old view some seconds
// later.
//
// Time is measured by the monotonic clock, and by the wall clock too, which goes on while a virtual
// machine is suspended. A process that was stopped finds its confirmation out of date when it wakes
// up.
type Freshness struct {
	cfg FreshnessConfig

	confirmed atomic.Pointer[time.Time] // when the last confirmation was begun

	mu sync.Mutex
	// round is closed at the end of each round.
	round chan struct{}
	// lost is closed while the process is cut off.
	lost   chan struct{}
	isLost bool
	// failed is the error of the last round.
	failed error
	// tentative is when the first round succeeded after a silence.
	tentative time.Time

	kick chan struct{}
}

// FreshnessConfig is what a Freshness needs. Refresh is required.
type FreshnessConfig struct {
	// Refresh returns nil once the view has everything that the directory held at the call. It must
	// ask a leader.
	Refresh func(ctx context.Context) error
	// Registered reports whether the other replicas know of this one; nil means that they always
	// do.
	Registered func() bool
	// CutOff reports whether the broker has been out of reach for a while: then nobody waits for a
	// confirmation. nil means that it never is.
	CutOff func() bool
	// Clustered reports whether the broker is a cluster, where leaders change; nil means that it is
	// not.
	Clustered func() bool
	// Log is where the loss of the directory goes; nil means slog.Default.
	Log *slog.Logger
}

// NewFreshness returns a Freshness that Run keeps. Nothing is confirmed before.
func NewFreshness(cfg FreshnessConfig) *Freshness {
	if cfg.Registered == nil {
		cfg.Registered = func() bool { return true }
	}
	if cfg.CutOff == nil {
		cfg.CutOff = func() bool { return false }
	}
	if cfg.Clustered == nil {
		cfg.Clustered = func() bool { return false }
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Freshness{
		cfg: cfg, round: make(chan struct{}), lost: make(chan struct{}),
		kick: make(chan struct{}, 1),
	}
}

// Run confirms the view until ctx ends, and returns ctx's error.
func (f *Freshness) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.confirmAll(ctx) })
	group.Go(func() error { return f.judgeAll(ctx) })
	return group.Wait()
}

func (f *Freshness) confirmAll(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		case <-f.kick:
		}
		at := time.Now()
		err := f.refresh(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.ended(at, err)
		// Those who wait ask for the next round as soon as one has ended.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(freshPause):
		}
		timer.Reset(max(freshEvery-time.Since(at), 0))
	}
}

// errUnregistered says that the other replicas may not know of this one and would not wait for it.
var errUnregistered = errors.New("the replica's heartbeat is not stored")

func (f *Freshness) refresh(ctx context.Context) error {
	// Only what is confirmed after the others know of this replica counts: they list the replicas
	// after they have changed something.
	if !f.cfg.Registered() {
		return errUnregistered
	}
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	return f.cfg.Refresh(ctx)
}

// ended notes the end of a round.
func (f *Freshness) ended(at time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
	if err != nil {
		f.tentative = time.Time{}
	} else if f.settled(at) {
		f.confirmed.Store(&at)
		f.tentative = time.Time{}
		if f.isLost {
			f.isLost = false
			f.lost = make(chan struct{})
			f.cfg.Log.Info("directory heard again")
		}
	}
	close(f.round)
	f.round = make(chan struct{})
}

// settled reports whether a round that succeeded is to be believed. After a silence in which a
// cluster may have elected another leader, the first answer may be that of the former one, which
// has just woken up and does not know.
func (f *Freshness) settled(at time.Time) bool {
	last := f.confirmed.Load()
	if last == nil || at.Sub(*last) < leaderActive || !f.cfg.Clustered() {
		return true
	}
	if f.tentative.IsZero() {
		f.tentative = at
	}
	return at.Sub(f.tentative) >= freshSettle
}

// judgeAll finds out in time that the process is cut off, whatever the rounds wait for.
func (f *Freshness) judgeAll(ctx context.Context) error {
	ticker := time.NewTicker(freshEvery)
	defer ticker.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			f.judge(began)
		}
	}
}

func (f *Freshness) judge(began time.Time) {
	cutOff := f.cfg.CutOff()
	f.mu.Lock()
	defer f.mu.Unlock()
	last := began
	if at := f.confirmed.Load(); at != nil {
		last = *at
	}
	unconfirmed := time.Since(last)
	if f.isLost || unconfirmed < freshFor || !cutOff && unconfirmed < freshPatience {
		return
	}
	f.isLost = true
	close(f.lost)
	close(f.round)
	f.round = make(chan struct{})
	f.cfg.Log.Error(
		"directory lost: requests with a key are answered 503",
		"unconfirmed_ms", unconfirmed.Milliseconds(), "broker_out_of_reach", cutOff,
		"error", f.failed,
	)
}

// Fresh reports whether the process may act by its view at this moment. Confirm waits where Fresh
// is false.
func (f *Freshness) Fresh() bool { return f.fresh(time.Now()) }

// fresh reports whether the last confirmation is still good.
func (f *Freshness) fresh(now time.Time) bool {
	at := f.confirmed.Load()
	// Round drops the monotonic clock.
	return at != nil && now.Sub(*at) < freshFor && now.Round(0).Sub(at.Round(0)) < 2*freshFor
}

// Confirm returns nil when the process may act by its view: it has been confirmed a moment ago, or
// is confirmed afresh while Confirm waits. Otherwise the error is a domain.Unavailable: at once
// when the broker is out of reach, else after 15 s, or ctx's error when ctx ends.
func (f *Freshness) Confirm(ctx context.Context) error {
	now := time.Now()
	if f.fresh(now) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, freshPatience, errUnconfirmed)
	defer cancel()
	for {
		f.mu.Lock()
		round, lost, failed := f.round, f.isLost, f.failed
		f.mu.Unlock()
		at := f.confirmed.Load()
		switch {
		case at != nil && !at.Before(now), f.fresh(time.Now()):
			return nil
		case lost:
			return errors.Join(errStale(), failed)
		}
		select {
		case f.kick <- struct{}{}:
		default:
		}
		select {
		case <-round:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errUnconfirmed) {
				return errors.Join(errStale(), errUnconfirmed, failed)
			}
			return ctx.Err()
		}
	}
}

var errUnconfirmed = errors.New("not confirmed in time")

// errStale returns what clients are told.
func errStale() error {
	return domain.Unavailable(
		"this server cannot tell at the moment which API keys and sessions are valid; nothing was done",
	)
}

// Lost returns a channel that is closed once the process is cut off from the directory: what is
// open ends, so that clients go to another replica. It is good until it is closed.
func (f *Freshness) Lost() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Err returns nil unless the process is cut off from the directory, and why otherwise.
func (f *Freshness) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isLost {
		return nil
	}
	return fmt.Errorf("cut off from the directory: %w", f.failed)
}
