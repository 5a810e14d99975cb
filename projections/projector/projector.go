package projector

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"hubcloud/projections"
	"hubcloud/projections/apply"
	"hubcloud/projections/database"
	"hubcloud/projections/internal/position"
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

// Projector keeps the read models up to date, or stands by while another process does.
type Projector struct {
	cfg       Config
	schema    string
	metrics   *metrics
	directory *apply.DirectorySource
	presence  *apply.PresenceSource
	// presenceAt is the checkpoint of the presence projection.
	presenceAt position.Position
}

// New returns a Projector, and registers its metrics.
func New(cfg Config) (*Projector, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("projector: %w", err)
	}
	p := &Projector{
		cfg: cfg, schema: cfg.Store.Schema(), presence: &apply.PresenceSource{Bucket: cfg.Presence},
	}
	p.directory = &apply.DirectorySource{
		Log: cfg.Directory, Presence: p.presence, PresencePosition: &p.presenceAt,
	}
	var err error
	if p.metrics, err = newMetrics(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("projector: %w", err)
	}
	return p, nil
}

// Run projects, or stands by while another process projects, until ctx ends, and returns nil then.
// It returns an error only if the broker's connection was closed. After any other error it tries
// again; the status and the metrics show such errors.
func (p *Projector) Run(ctx context.Context) error {
	warn := rate.Sometimes{First: 1, Interval: database.WarnInterval}
	for {
		err := p.withConn(ctx, func(conn *pgx.Conn) error {
			if err := p.standBy(ctx, conn); err != nil {
				return err
			}
			return p.lead(ctx, conn)
		})
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		warn.Do(func() {
			p.cfg.Logger.Warn(
				"projector stopped; standing by", "error", err,
				"retry_ms", standByPause.Milliseconds(),
			)
		})
		database.Pause(ctx, standByPause)
	}
}

// withConn runs fn on a connection of its own.
func (p *Projector) withConn(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	return database.WithConn(ctx, p.cfg.Store.ConnConfig(), fn)
}

// standBy waits until the connection holds the ProjectorLock. It polls, because a statement that
// waits for the lock would keep PostgreSQL from vacuuming.
func (p *Projector) standBy(ctx context.Context, conn *pgx.Conn) error {
	if err := database.EndWhenSilent(ctx, conn); err != nil {
		return err
	}
	lock := database.ProjectorLock(p.schema)
	for logged := false; ctx.Err() == nil; database.Pause(ctx, standByPause) {
		taken, err := lock.Try(ctx, conn)
		if err != nil || taken {
			return err
		}
		if !logged {
			p.cfg.Logger.Info("another process projects; standing by", "schema", p.schema)
			logged = true
		}
	}
	return ctx.Err()
}

//go:embed end_writers.sql
var endWriters string

// takeOver begins a new term and returns it: the previous projector can no longer commit. takeOver
// ends the session of a previous projector that hangs or was cut off within a transaction. The
// caller must hold the lock.
func takeOver(ctx context.Context, conn *pgx.Conn) (term int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, database.SessionLimit/2)
	defer cancel()
	if _, err := conn.Exec(ctx, endWriters); err != nil {
		return 0, err
	}
	return query.New(conn).TakeOver(ctx)
}

// lead runs the projections as long as the connection holds the lock.
func (p *Projector) lead(ctx context.Context, conn *pgx.Conn) error {
	term, err := takeOver(ctx, conn)
	if err != nil {
		return fmt.Errorf("take over from the last projector: %w", err)
	}
	p.cfg.Logger.Info("projecting", "schema", p.schema, "term", term)
	p.metrics.leading.Set(1)
	defer p.metrics.stopLeading()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.runProjections(ctx, term) })
	group.Go(func() error { return p.keepLock(ctx, conn) })
	group.Go(func() error { p.measureLags(ctx); return nil })
	return group.Wait()
}

func (p *Projector) runProjections(ctx context.Context, term int64) error {
	if err := p.buildFirst(ctx); err != nil {
		return err
	}
	directory := newProjection(p, p.directory, p.cfg.Store.Position(), term)
	directory.notifyChannel = p.schema
	presence := newProjection(p, p.presence, &p.presenceAt, term)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return directory.run(ctx) })
	group.Go(func() error { return presence.run(ctx) })
	return group.Wait()
}

// keepLock reads the operators' stops on the connection of the lock, every keepLockInterval, and
// sets their metric. The statements show other processes that the session does not hang. keepLock
// returns an error when a statement fails: the connection, and the lock with it, may be lost. It
// must do nothing else that takes time.
func (p *Projector) keepLock(ctx context.Context, conn *pgx.Conn) error {
	tick := time.NewTicker(keepLockInterval)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, keepLockTimeout)
		stops, err := query.New(conn).Stops(asking)
		cancel()
		if err != nil {
			return fmt.Errorf("projector lock: %w", err)
		}
		p.metrics.setOperatorStops(stops)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// lagInterval is the time between two measurements of the lag.
const lagInterval = 5 * time.Second

// measureLags keeps the metrics of the lag up to date until ctx ends.
func (p *Projector) measureLags(ctx context.Context) {
	streams := map[string]status.Stream{
		projections.Directory: p.directory, projections.Presence: p.presence,
	}
	for ctx.Err() == nil {
		asking, cancel := context.WithTimeout(ctx, database.AnswerTimeout)
		all, err := p.cfg.Store.Status(asking, streams)
		cancel()
		if err == nil { // otherwise the metrics keep their values
			p.metrics.setLags(all)
		}
		database.Pause(ctx, lagInterval)
	}
}
