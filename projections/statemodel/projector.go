package statemodel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"hubcloud/projections"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/status"
)

const (
	// standByPause is the time between two tries to take over.
	standByPause = 500 * time.Millisecond
	// keepLockInterval is the time between two statements on the connection that holds the lock. It
	// must be well below database.SilenceLimit.
	keepLockInterval = 500 * time.Millisecond
	// keepLockTimeout bounds each of these statements.
	keepLockTimeout = 2 * time.Second
)

var (
	// errTakenOver means that another process has taken over as the projector.
	errTakenOver = errors.New("another process projects last reported states now")
	// errStopped means that an operator has stopped the projection.
	errStopped = errors.New("stopped by an operator")
)

// Projector keeps the tables up to date, or stands by while another process does.
type Projector struct {
	cfg     Config
	metrics *metrics
}

// New returns a Projector, and registers its metrics.
func New(cfg Config) (*Projector, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("state model: %w", err)
	}
	return &Projector{cfg: cfg, metrics: m}, nil
}

// Run projects, or stands by while another process projects, until ctx ends, and returns nil then.
// It returns an error only if the broker's connection was closed. After any other error it tries
// again.
func (p *Projector) Run(ctx context.Context) error {
	warn := rate.Sometimes{First: 1, Interval: database.WarnInterval}
	for {
		err := database.WithConn(ctx, p.cfg.Database, func(conn *pgx.Conn) error {
			if err := Install(ctx, conn); err != nil {
				return err
			}
			if err := p.standBy(ctx, conn); err != nil {
				return err
			}
			return p.lead(ctx, conn)
		})
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, nats.ErrConnectionClosed):
			return err
		case errors.Is(err, errStopped):
			p.cfg.Logger.Info("projection of last reported states stopped by an operator")
		default:
			warn.Do(func() {
				p.cfg.Logger.Warn(
					"projector of last reported states stopped; standing by", "error", err,
					"retry_ms", standByPause.Milliseconds(),
				)
			})
		}
		database.Pause(ctx, standByPause)
	}
}

// standBy waits until the connection holds the lock and no operator stops the projection.
func (p *Projector) standBy(ctx context.Context, conn *pgx.Conn) error {
	if err := database.EndWhenSilent(ctx, conn); err != nil {
		return err
	}
	lock := database.ProjectorLock(Schema())
	for ; ctx.Err() == nil; database.Pause(ctx, standByPause) {
		stopped, err := stoppedByOperator(ctx, conn)
		if err != nil {
			return err
		}
		if stopped {
			continue
		}
		if taken, err := lock.Try(ctx, conn); err != nil || taken {
			return err
		}
	}
	return ctx.Err()
}

func stoppedByOperator(ctx context.Context, conn *pgx.Conn) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, keepLockTimeout)
	defer cancel()
	stops, err := query.New(conn).Stops(ctx)
	_, stopped := status.StopOf(stops, projections.Devices)
	return stopped, err
}

// lead projects all journals as long as the connection holds the lock.
func (p *Projector) lead(ctx context.Context, conn *pgx.Conn) error {
	var term int64
	if err := conn.QueryRow(ctx, SQL(takeOver)).Scan(&term); err != nil {
		return fmt.Errorf("take over from the last projector: %w", err)
	}
	p.cfg.Logger.Info("projecting last reported states", "schema", Schema(), "term", term)
	p.metrics.leading.Set(1)
	defer p.metrics.stopLeading()
	running, ctx := errgroup.WithContext(ctx)
	running.Go(func() error { return p.keepLock(ctx, conn) })
	for number := range p.cfg.Journal.Number() {
		running.Go(func() error { return p.project(ctx, number, term) })
	}
	return running.Wait()
}

// keepLock checks for operators' stops on the connection of the lock, every keepLockInterval. The
// statements show other processes that the session does not hang. It returns an error when a
// statement fails: the connection, and the lock with it, may be lost.
func (p *Projector) keepLock(ctx context.Context, conn *pgx.Conn) error {
	tick := time.NewTicker(keepLockInterval)
	defer tick.Stop()
	for {
		switch stopped, err := stoppedByOperator(ctx, conn); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("projector lock: %w", err)
		case stopped:
			return errStopped
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// project projects one journal until ctx ends or another process has taken over. After other errors
// it goes on from the checkpoint.
func (p *Projector) project(ctx context.Context, number int, term int64) error {
	wait := database.FirstRetry
	for {
		begun := time.Now()
		err := newProjection(p.cfg, p.metrics, Schema(), number, term).run(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errTakenOver), errors.Is(err, nats.ErrConnectionClosed):
			return err
		}
		if time.Since(begun) > database.LastRetry {
			wait = database.FirstRetry
		}
		p.cfg.Logger.Warn(
			"projection of last reported states interrupted; going on from its checkpoint",
			"journal", number, "error", err, "retry_ms", wait.Milliseconds(),
		)
		database.Pause(ctx, wait)
		wait = min(2*wait, database.LastRetry)
	}
}
