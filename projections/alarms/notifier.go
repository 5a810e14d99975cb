package alarms

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/shares"
)

// lockName names the lock. It must never change: replicas of several versions share it.
const lockName = "alarm mails"

// Notifier mails members about conditions, or stands by while another process does.
type Notifier struct {
	cfg     Config
	metrics *metrics
	share   *shares.Turns
	// started is when the notifier was made. What began before is mailed to nobody if mails have
	// not begun.
	started time.Time
}

// New returns a Notifier, and registers its metrics.
func New(cfg Config) (*Notifier, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("notifier", cfg); err != nil {
		return nil, err
	}
	return &Notifier{
		cfg: cfg, metrics: newMetrics(cfg.Metrics), started: cfg.Now(),
		share: shares.NewTurns(cfg.Shares, "alarm_mails"),
	}, nil
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
			return n.lead(ctx)
		},
	}
	return leadership.Run(ctx)
}

// lead observes and mails until the records are another process's, or announcements may have been
// missed.
func (n *Notifier) lead(ctx context.Context) error {
	return schema.WithConn(ctx, n.cfg.Database, func(conn *pgx.Conn) error {
		// Before anything is observed, so that nothing is missed.
		if _, err := conn.Exec(ctx, "LISTEN "+schema.AttentionChannel); err != nil {
			return err
		}
		l, err := n.load(ctx)
		if err != nil {
			return err
		}
		n.cfg.Logger.Info("mailing about alarms", "organizations", len(l.records))
		running, ctx := errgroup.WithContext(ctx)
		running.Go(func() error { return l.announced.listen(ctx, conn) })
		running.Go(func() error { return l.run(ctx) })
		return running.Wait()
	})
}
