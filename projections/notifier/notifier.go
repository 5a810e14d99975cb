package notifier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"hubcloud/projections"
	"hubcloud/projections/database"
)

const (
	// standByPause is the time between two tries to take over.
	standByPause = 500 * time.Millisecond
	// keepLockInterval is the time between two statements on the connection that holds the lock. It
	// must be well below database.SilenceLimit.
	keepLockInterval = 500 * time.Millisecond
	// keepLockTimeout bounds each of these statements.
	keepLockTimeout = 2 * time.Second
	// lockName names the lock. It must never change: replicas of several versions share it.
	lockName = "alarm mails"
	// idleShare is how many times longer than a round the pause after it is at least.
	idleShare = 19
)

// Notifier mails members about conditions, or stands by while another process does.
type Notifier struct {
	cfg     Config
	metrics *metrics
	// started is when the notifier was made. What began before is mailed to nobody if mails have not
	// begun.
	started time.Time
}

// New returns a Notifier, and registers its metrics.
func New(cfg Config) (*Notifier, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("notifier: %w", err)
	}
	return &Notifier{cfg: cfg, metrics: m, started: cfg.Now()}, nil
}

// Run mails, or stands by while another process mails, until ctx ends, and returns nil then. After
// any error it tries again.
func (n *Notifier) Run(ctx context.Context) error {
	warn := rate.Sometimes{First: 1, Interval: database.WarnInterval}
	for {
		err := database.WithConn(ctx, n.cfg.Database, func(conn *pgx.Conn) error {
			if err := n.standBy(ctx, conn); err != nil {
				return err
			}
			return n.lead(ctx, conn)
		})
		if ctx.Err() != nil {
			return nil
		}
		warn.Do(func() {
			n.cfg.Logger.Warn(
				"alarm mails stopped; standing by", "error", err,
				"retry_ms", standByPause.Milliseconds(),
			)
		})
		database.Pause(ctx, standByPause)
	}
}

// standBy waits until the connection holds the lock.
func (n *Notifier) standBy(ctx context.Context, conn *pgx.Conn) error {
	if err := database.EndWhenSilent(ctx, conn); err != nil {
		return err
	}
	lock := database.ProjectorLock(lockName)
	for ; ctx.Err() == nil; database.Pause(ctx, standByPause) {
		if taken, err := lock.Try(ctx, conn); err != nil || taken {
			return err
		}
	}
	return ctx.Err()
}

// lead mails as long as the connection holds the lock.
func (n *Notifier) lead(ctx context.Context, conn *pgx.Conn) error {
	n.metrics.leading.Set(1)
	defer n.metrics.stopLeading()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return keepLock(ctx, conn) })
	running.Go(func() error { return n.runRounds(ctx) })
	return running.Wait()
}

// keepLock shows the server and other processes that the session of the lock does not hang. It
// returns an error when a statement fails: the connection, and the lock with it, may be lost.
func keepLock(ctx context.Context, conn *pgx.Conn) error {
	for ; ctx.Err() == nil; database.Pause(ctx, keepLockInterval) {
		asking, cancel := context.WithTimeout(ctx, keepLockTimeout)
		err := conn.Ping(asking)
		cancel()
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("lock of alarm mails: %w", err)
		}
	}
	return ctx.Err()
}

// runRounds observes and mails until the records are another process's.
func (n *Notifier) runRounds(ctx context.Context) error {
	l, err := n.load(ctx)
	if err != nil {
		return err
	}
	n.cfg.Logger.Info("mailing about alarms", "organizations", len(l.records))
	failing := false
	for {
		begun := time.Now()
		err := l.round(ctx)
		took := time.Since(begun)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case l.lost != nil:
			return l.lost
		case err != nil:
			n.metrics.failures.Inc()
			if !failing && !errors.Is(err, projections.ErrBuilding) {
				n.cfg.Logger.Warn("alarm mails delayed", "error", err)
			}
		case failing:
			n.cfg.Logger.Info("alarm mails no longer delayed")
		}
		failing = err != nil
		n.metrics.seconds.Observe(took.Seconds())
		database.Pause(ctx, max(n.cfg.Interval, idleShare*took))
	}
}
