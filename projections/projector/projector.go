package projector

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/shares"
)

// statesShare is the resource of the turns in which last reported states are written.
const statesShare = "reported_states"

// Projector keeps the read models up to date, or stands by while another process does.
type Projector struct {
	cfg       Config
	metrics   *metrics
	directory *directorySource
	presence  *PresenceSource
	devices   []*devicesSource
	// kept are the channels that organizations have.
	kept *shares.Pool
	// presenceAt is the checkpoint of the presence projection.
	presenceAt schema.Position
}

// New returns a Projector, and registers its metrics.
func New(cfg Config) (*Projector, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("projector", cfg); err != nil {
		return nil, err
	}
	p := &Projector{
		cfg: cfg, metrics: newMetrics(cfg.Metrics),
		presence: &PresenceSource{Bucket: cfg.Presence, Announce: true},
		kept:     newKept(cfg.Shares, cfg.OrgChannels),
	}
	p.directory = &directorySource{
		Log: cfg.Directory, Presence: p.presence, PresencePosition: &p.presenceAt,
	}
	order := shares.NewTurns(cfg.Shares, statesShare)
	for number := range cfg.Journal.Groups() {
		p.devices = append(p.devices, &devicesSource{
			Journal: cfg.Journal, Number: number, Interval: cfg.FlushInterval,
			MaxChannels: max(1, cfg.MaxChannels/cfg.Journal.Groups()), MaxRows: cfg.MaxRows,
			Turns: order, Announce: true, Kept: p.kept,
			SweepInterval: cfg.SweepInterval, Logger: cfg.Logger, metrics: p.metrics,
		})
	}
	return p, nil
}

// Run projects, or stands by while another process projects, until ctx ends, and returns nil then.
// It returns an error only if the broker's connection was closed. After any other error it tries
// again; the status and the metrics show such errors.
func (p *Projector) Run(ctx context.Context) error {
	pool, err := newPool(ctx, p.cfg.Database)
	if err != nil {
		return err
	}
	defer pool.Close()
	var term int64
	leadership := schema.Leadership{
		Work: "the projector", Database: p.cfg.Database, Lock: schema.ProjectorLock(p.cfg.Schema),
		Logger: p.cfg.Logger,
		Begin: func(ctx context.Context, conn *pgx.Conn) (err error) {
			term, err = takeOver(ctx, conn)
			return err
		},
		Keep: func(ctx context.Context, conn *pgx.Conn) error {
			stops, err := schema.New(conn).Stops(ctx)
			if err == nil {
				p.metrics.setOperatorStops(stops)
			}
			return err
		},
		Lead: func(ctx context.Context) error { return p.lead(ctx, pool, term) },
	}
	return leadership.Run(ctx)
}

// newPool returns a pool for what is asked beside the projections, again and again: a connection
// for each time would cost PostgreSQL a process, more than all else that an idle service costs it.
func newPool(ctx context.Context, database *pgx.ConnConfig) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(database.ConnString())
	if err != nil {
		return nil, err
	}
	config.ConnConfig, config.MaxConns = database.Copy(), 2
	return pgxpool.NewWithConfig(ctx, config)
}

//go:embed sql/end_writers.sql
var endWriters string

// takeOver begins a new term and returns it: the previous projector can no longer commit. takeOver
// ends the session of a previous projector that hangs or was cut off within a transaction. The
// caller must hold the lock.
func takeOver(ctx context.Context, conn *pgx.Conn) (term int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, schema.SessionLimit/2)
	defer cancel()
	if _, err := conn.Exec(ctx, endWriters); err != nil {
		return 0, err
	}
	return schema.New(conn).TakeOver(ctx)
}

// lead runs the projections under a term.
func (p *Projector) lead(ctx context.Context, pool *pgxpool.Pool, term int64) error {
	p.cfg.Logger.Info("projecting", "schema", p.cfg.Schema, "term", term)
	p.metrics.leading.Set(1)
	defer p.metrics.stopLeading()
	if err := p.buildFirst(ctx); err != nil {
		return err
	}
	directory := newProjection(p, p.directory, p.cfg.Committed, term)
	directory.notifyChannel = p.cfg.Schema
	presence := newProjection(p, p.presence, &p.presenceAt, term)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return directory.run(ctx) })
	group.Go(func() error { return presence.run(ctx) })
	group.Go(func() error { return p.measureLags(ctx, pool, p.directory, p.presence) })
	group.Go(func() error { return p.leadDevices(ctx, pool, term) })
	books := &bookSource{p.cfg.Book}
	group.Go(func() error { return newProjection(p, books, &schema.Position{}, term).run(ctx) })
	group.Go(func() error { return p.measureLags(ctx, pool, books) })
	return group.Wait()
}

// leadDevices runs the projection of each journal.
func (p *Projector) leadDevices(ctx context.Context, pool *pgxpool.Pool, term int64) error {
	group, ctx := errgroup.WithContext(ctx)
	var streams []schema.Stream
	for _, source := range p.devices {
		streams = append(streams, source)
		source.Sweep = func(ctx context.Context, journal int) ([]domain.HubID, error) {
			return p.deleteReleased(ctx, pool, journal, term)
		}
		devices := newProjection(p, source, &schema.Position{}, term)
		group.Go(func() error { return devices.run(ctx) })
	}
	group.Go(func() error { return p.measureLags(ctx, pool, streams...) })
	return group.Wait()
}

// lagInterval is the time between two measurements of the lag.
const lagInterval = 5 * time.Second

// measureLags keeps the metrics of the lag of streams up to date until ctx ends.
func (p *Projector) measureLags(
	ctx context.Context, pool *pgxpool.Pool, streams ...schema.Stream,
) error {
	for ; ctx.Err() == nil; schema.Pause(ctx, lagInterval) {
		asking, cancel := context.WithTimeout(ctx, schema.AnswerTimeout)
		all, err := schema.ReadStatus(asking, pool, p.cfg.Schema, streams)
		cancel()
		if err == nil {
			p.metrics.setLags(all)
		} else if ctx.Err() == nil { // the metrics keep their values
			p.cfg.Logger.Debug("lag not measured", "error", err)
		}
	}
	return nil
}

// countKept counts the channels that organizations have in the tables.
func (p *Projector) countKept(ctx context.Context, queries *schema.Queries) error {
	rows, err := queries.ChannelsOfOrgs(ctx)
	if err != nil {
		return err
	}
	held := make(map[shares.Spender]int64, len(rows))
	for _, row := range rows {
		held[shares.Spender{Org: row.OrgID}] = row.Channels
	}
	p.kept.Replace(held)
	return nil
}

// deleteReleased deletes the last reported states of hubs of a journal that were released, and
// returns the hubs, unless the directory's projection stands or is behind: then the rows of a hub
// that an organization has may look as if nobody had it. It fails with errMoved if another projector
// than that of a term has taken over, or if an operator has stopped the projection of the states.
func (p *Projector) deleteReleased(
	ctx context.Context, pool *pgxpool.Pool, journal int, term int64,
) (hubs []domain.HubID, err error) {
	ctx, cancel := context.WithTimeout(ctx, schema.CommitTimeout)
	defer cancel()
	queries := schema.New(pool)
	at, err := queries.Checkpoint(ctx, schema.Directory)
	if err != nil {
		return nil, err
	}
	if err := p.countKept(ctx, queries); err != nil {
		return nil, err
	}
	head, err := p.directory.Head(ctx, uint64(at.Sequence))
	if err != nil || head != uint64(at.Sequence) {
		return nil, nil // at the next time
	}
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		queries := schema.New(tx)
		held, err := queries.HoldCheckpoint(ctx, schema.HoldCheckpointParams{
			Projection: schema.JournalName(journal), Term: term,
		})
		if err != nil {
			return err
		}
		if held == 0 {
			return errMoved
		}
		released, err := queries.ReleasedHubs(ctx, int32(journal))
		if err != nil || len(released) == 0 {
			return err
		}
		for _, id := range released {
			hubs = append(hubs, domain.HubID(id))
		}
		return queries.DeleteReportedHubs(ctx, released)
	})
	return hubs, err
}
