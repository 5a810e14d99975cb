package alarms

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"hubcloud/projections/schema"
)

// lockName names the lock. It must never change: replicas of several versions share it.
const lockName = "alarm mails"

// Notifier mails members about conditions, or stands by while another process does.
type Notifier struct {
	cfg     Config
	metrics *metrics
	// started is when the notifier was made. What began before is mailed to nobody if mails have
	// not begun.
	started time.Time
}

// New returns a Notifier, and registers its metrics.
func New(cfg Config) (*Notifier, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Notifier{cfg: cfg, metrics: newMetrics(cfg.Metrics), started: cfg.Now()}, nil
}

// Run mails, or stands by while another process mails, until ctx ends, and returns nil then. After
// any error it tries again.
func (n *Notifier) Run(ctx context.Context) error {
	leadership := schema.Leadership{
		Work: "alarm mails", Database: n.cfg.Database, Lock: schema.ProjectorLock(lockName),
		Logger: n.cfg.Logger,
		Keep:   func(ctx context.Context, conn *pgx.Conn) error { return conn.Ping(ctx) },
		Lead: func(ctx context.Context) error {
			n.metrics.leading.Set(1)
			defer n.metrics.stopLeading()
			return n.runRounds(ctx)
		},
	}
	return leadership.Run(ctx)
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
			if !failing && !errors.Is(err, schema.ErrBuilding) {
				n.cfg.Logger.Warn("alarm mails delayed", "error", err)
			}
		case failing:
			n.cfg.Logger.Info("alarm mails no longer delayed")
		}
		failing = err != nil
		n.metrics.seconds.Observe(took.Seconds())
		schema.Pause(ctx, max(n.cfg.Interval, took))
	}
}
