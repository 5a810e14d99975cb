package replicas

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/jsapi"
)

const (
	// freshFor is how long a process may act by its view of the directory after the view was
	// confirmed.
	freshFor = time.Second
	// freshEvery is the pause between two confirmations: several may fail before the last one
	// expires.
	freshEvery = 250 * time.Millisecond
	// freshPause is the least pause between two of them.
	freshPause = 20 * time.Millisecond
	// freshTimeout bounds one confirmation.
	freshTimeout = 2 * time.Second
	// freshPatience is how long the broker may be in reach without a confirmation until the process
	// counts as cut off: a cluster that lost a server has new leaders within ten seconds.
	freshPatience = jsapi.Patience
	// freshProbation is for how long rounds must succeed in a cluster before the view counts as
	// confirmed again after a silence.
	freshProbation = time.Second
)

// Freshness decides whether this process may act by its view of the directory, which it holds in
// memory. A process that is cut off from the broker does not learn that a key is revoked, so the
// view is confirmed several times a second, and each confirmation is good for a second.
// Barrier.Wait relies on that: a replica that does not reply has stopped acting by an old view some
// seconds later. Safe for concurrent use.
//
// A confirmation that is over makes requests wait for the next one, not fail: a process that gets
// no processor, or was stopped, is slow and nothing else. Requests fail once the process is cut
// off, which it measures by the time during which it ran (runClock).
type Freshness struct {
	cfg   FreshnessConfig
	clock runClock

	// confirmed is when the last confirmation began, and confirmedAt the same on the clock.
	confirmed   atomic.Pointer[time.Time]
	confirmedAt atomic.Int64

	mu sync.Mutex
	// round is closed at the end of each round of confirmation.
	round chan struct{}
	// lost is closed while the process is cut off, as isLost reports.
	lost   chan struct{}
	isLost bool
	// failed is the error of the last round.
	failed error
	// tentative is when the first round succeeded after a silence; zero when the last one failed.
	tentative time.Time

	// kick starts the next round at once.
	kick chan struct{}
}

// FreshnessConfig configures a Freshness. Refresh is required.
type FreshnessConfig struct {
	// Refresh returns nil once the view has everything that the directory held at the call. It must
	// ask a leader.
	Refresh func(ctx context.Context) error `check:"set"`
	// Registered reports whether the other replicas know of this one. Defaults to always.
	Registered func() bool
	// CutOff reports whether the broker has been out of reach for a while: then Confirm does not
	// wait. Defaults to never.
	CutOff func() bool
	// Clustered reports whether the broker is a cluster, where leaders change. Defaults to never.
	Clustered func() bool
	// Embedded states that the broker runs in this process, which cannot be cut off from it: the
	// view needs no confirmation, since Barrier.Wait waits for the process.
	Embedded bool
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c FreshnessConfig) WithDefaults() FreshnessConfig {
	if c.Registered == nil {
		c.Registered = func() bool { return true }
	}
	if c.CutOff == nil {
		c.CutOff = func() bool { return false }
	}
	if c.Clustered == nil {
		c.Clustered = func() bool { return false }
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// NewFreshness returns a Freshness. Nothing is confirmed until Run runs.
func NewFreshness(cfg FreshnessConfig) (*Freshness, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("freshness", cfg); err != nil {
		return nil, err
	}
	return &Freshness{
		cfg: cfg, round: make(chan struct{}), lost: make(chan struct{}),
		kick: make(chan struct{}, 1),
	}, nil
}

// Run confirms the view until ctx ends, and returns ctx's error.
func (f *Freshness) Run(ctx context.Context) error {
	if f.cfg.Embedded {
		<-ctx.Done()
		return ctx.Err()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.clock.run(ctx) })
	group.Go(func() error { return f.confirmAll(ctx) })
	group.Go(func() error { return f.detectLoss(ctx) })
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
		at, onClock := time.Now(), f.clock.now()
		err := f.refresh(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.endRound(at, onClock, err)
		// Callers that still wait start the next round as soon as one has ended.
		if !streams.Sleep(ctx, freshPause) {
			return ctx.Err()
		}
		timer.Reset(max(freshEvery-time.Since(at), 0))
	}
}

// errUnregistered reports that the other replicas may not know of this one and would not wait for
// it.
var errUnregistered = errors.New("the replica's heartbeat is not stored")

func (f *Freshness) refresh(ctx context.Context) error {
	// The others list the replicas after they have changed something. So a confirmation counts only
	// if they knew of this replica before it.
	if !f.cfg.Registered() {
		return errUnregistered
	}
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	return f.cfg.Refresh(ctx)
}

// endRound notes the result of a round that began at that time, also given on the clock.
func (f *Freshness) endRound(at time.Time, onClock time.Duration, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
	if err != nil {
		f.tentative = time.Time{}
	} else if f.isBelievable(at) {
		f.confirmed.Store(&at)
		f.confirmedAt.Store(int64(onClock))
		f.tentative = time.Time{}
		if f.isLost {
			f.isLost = false
			f.lost = make(chan struct{})
			f.cfg.Logger.Info("directory confirmed again")
		}
	}
	close(f.round)
	f.round = make(chan struct{})
}

// isBelievable reports whether a round that succeeded confirms the view. After a silence in which a
// cluster may have elected another leader, the first answer may come from the former leader, which
// has just woken up and does not know of its successor.
func (f *Freshness) isBelievable(at time.Time) bool {
	last := f.confirmed.Load()
	if last == nil || at.Sub(*last) < jsapi.LeaderActive || !f.cfg.Clustered() {
		return true
	}
	if f.tentative.IsZero() {
		f.tentative = at
	}
	return at.Sub(f.tentative) >= freshProbation
}

// detectLoss notices that the process is cut off even while a round waits for an answer.
func (f *Freshness) detectLoss(ctx context.Context) error {
	for streams.Sleep(ctx, freshEvery) {
		f.checkLoss()
	}
	return ctx.Err()
}

func (f *Freshness) checkLoss() {
	cutOff := f.cfg.CutOff()
	f.mu.Lock()
	defer f.mu.Unlock()
	unconfirmed := f.clock.now() - time.Duration(f.confirmedAt.Load())
	if f.isLost || unconfirmed < freshFor || !cutOff && unconfirmed < freshPatience {
		return
	}
	f.isLost = true
	close(f.lost)
	close(f.round)
	f.round = make(chan struct{})
	f.cfg.Logger.Error(
		"directory lost: requests with a key are answered 503",
		"unconfirmed_ms", unconfirmed.Milliseconds(), "broker_out_of_reach", cutOff,
		"error", f.failed,
	)
}

// Fresh reports whether the process may act by its view at this moment. Unlike Confirm it never
// waits.
func (f *Freshness) Fresh() bool {
	at := f.confirmed.Load()
	return f.cfg.Embedded || at != nil && streams.Elapsed(*at) < freshFor
}

// Confirm returns nil once the process may act by its view: the view was confirmed within the last
// second, or is confirmed while Confirm waits. The error is a domain.Unavailable once the process
// is cut off, or ctx's.
func (f *Freshness) Confirm(ctx context.Context) error {
	now := time.Now()
	if f.Fresh() {
		return nil
	}
	for {
		f.mu.Lock()
		round, lost, failed := f.round, f.isLost, f.failed
		f.mu.Unlock()
		at := f.confirmed.Load()
		switch {
		case at != nil && !at.Before(now), f.Fresh():
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
			return ctx.Err()
		}
	}
}

// errStale returns the error that clients get.
func errStale() error {
	return domain.Unavailable(
		"this server cannot check API keys and sessions at the moment; nothing was done",
	)
}

// Lost returns a channel that is closed once the process is cut off from the directory, so that
// open event streams end and clients go to another replica. After it was closed, Lost returns
// another channel as soon as the directory is confirmed again.
func (f *Freshness) Lost() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost
}

// Err returns nil unless the process is cut off from the directory. Then the error has the cause.
func (f *Freshness) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.isLost {
		return nil
	}
	return fmt.Errorf("cut off from the directory: %w", f.failed)
}
