package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/projections/schema"
	"hubcloud/streams/shares"
)

const (
	// queryTimeout bounds a query: less than schema.AnswerTimeout, so that a query that takes long
	// is no database that is away.
	queryTimeout = 4 * time.Second
	// maxWaiting is how many reads of an organization wait for its share of the connections.
	maxWaiting = 1000
)

// Config configures a Store.
type Config struct {
	// URL is the database's connection string, in libpq's form. Required.
	URL string `check:"set"`
	// InstallationID names the installation that the database must belong to. Required.
	InstallationID string `check:"set"`
	// MaxConns is the most connections that queries use. The store and a projector use up to five
	// more. Defaults to 16.
	MaxConns int32 `check:"positive"`
	// Shares reports the shares of organizations in the connections; nil reports nothing.
	Shares *shares.Registry
	// Logger defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the metrics of the connections; nil means none.
	Metrics prometheus.Registerer
}

// WithDefaults returns a copy with defaults in place of zero values.
func (c Config) WithDefaults() Config {
	c.MaxConns = cmp.Or(c.MaxConns, 16)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Store has the queries on the read models. All methods may be called concurrently.
type Store struct {
	logger       *slog.Logger
	schema       string
	installation string
	dial         *pgx.ConnConfig
	pool         *pgxpool.Pool
	// shares bounds how many connections each organization uses.
	shares  *shares.Pool
	queries *schema.Queries
	// complete is closed once the first build of the read models is complete.
	complete     chan struct{}
	completeOnce sync.Once
	// incomplete means that the read models are built again after complete was closed: the database
	// was replaced by an empty one.
	incomplete atomic.Bool
	// claimed is closed once the database is known to be this installation's and to have the
	// schemas.
	claimed     chan struct{}
	claimedOnce sync.Once
	// rejected is why the database cannot be used; nil while nothing is known against it.
	rejected atomic.Pointer[error]

	// directory is the checkpoint of the directory's projection, as last read or notified.
	directory schema.Position
	// buildTarget is the sequence at which the first build is complete; 0 if unknown.
	buildTarget atomic.Uint64
	outage      outage

	stopListening context.CancelFunc
	listening     sync.WaitGroup
}

// Open connects to the database and creates the schema of the read models if it does not exist. It
// fails with schema.ErrOtherInstallation, schema.ErrEncoding or schema.ErrPooler if the database
// cannot be used. If the database is away for longer than patience, or for half of ctx's time, Open
// returns all the same: the store goes on trying, Claimed reports when it has succeeded, and reads
// fail until then.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("read models", cfg); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	s := &Store{
		logger: cfg.Logger, schema: schema.Name(), installation: cfg.InstallationID,
		complete: make(chan struct{}), claimed: make(chan struct{}),
	}
	pooling, err := schema.PoolConfig(cfg.URL, s.schema)
	if err != nil {
		return nil, err
	}
	pooling.MaxConns = cfg.MaxConns
	if pooling.ConnConfig.RuntimeParams["application_name"] == "" {
		pooling.ConnConfig.RuntimeParams["application_name"] = "hubcloud"
	}
	s.dial = pooling.ConnConfig.Copy()
	pooling.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(
			ctx, fmt.Sprintf("SET statement_timeout = %d", queryTimeout.Milliseconds()),
		)
		return err
	}
	s.shares = shares.NewPool(cfg.Shares, shares.PoolConfig{
		Name: "database_connections", What: "requests wait for the database",
		Limits: shares.Limits{
			Total: int64(cfg.MaxConns), Waiting: maxWaiting,
			PerOrg: int64(max(2, min(int(cfg.MaxConns)/4, runtime.GOMAXPROCS(0)))),
		},
	})
	if err := s.claimInTime(ctx); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, pooling); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(newPoolCollector(s.pool))
	}
	s.queries = schema.New(s.pool)
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.stopListening = cancel
	s.listening.Go(func() { s.listen(listening) })
	return s, nil
}

// Close ends the store's goroutine and connections, and waits for queries under way. A projector
// and an access index that use the store must have ended.
func (s *Store) Close() {
	s.stopListening()
	s.listening.Wait()
	s.pool.Close()
}

// Schema returns the name of the schema that holds the read models.
func (s *Store) Schema() string { return s.schema }

// ConnConfig returns the configuration of connections that find the tables of the read models.
func (s *Store) ConnConfig() *pgx.ConnConfig { return s.dial.Copy() }

// withConn runs fn on a connection of its own.
func (s *Store) withConn(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	return schema.WithConn(ctx, s.dial, fn)
}

// Claimed returns a channel that is closed once the database is known to be this installation's and
// to have the schemas. Nothing may be written to the database before.
func (s *Store) Claimed() <-chan struct{} { return s.claimed }

// claimInTime claims the database. It tries again until the database answers, has been away for
// patience, or half of ctx's time is over, and then returns nil: listen goes on trying.
func (s *Store) claimInTime(ctx context.Context) error {
	began := time.Now()
	trying := ctx
	if deadline, ok := ctx.Deadline(); ok {
		// The other half is for what follows the claim, also if ctx ends before patience does.
		half, cancel := context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
		trying = half
	}
	for wait := schema.FirstRetry; ; wait = min(2*wait, schema.LastRetry) {
		err := s.withConn(trying, func(conn *pgx.Conn) error {
			if err := schema.CheckSession(trying, s.dial, conn); err != nil {
				return err
			}
			if err := s.claim(trying, conn); err != nil {
				return err
			}
			return s.checkComplete(trying, schema.New(conn))
		})
		switch {
		case err == nil, Rejects(err):
			return err
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		case time.Now().After(s.failed(began, err)), trying.Err() != nil:
			s.logger.Warn("database not reached: serving what needs no read models")
			return nil
		}
		schema.Pause(trying, wait)
	}
}

// claim makes sure that the database is this installation's and that the schemas exist.
func (s *Store) claim(ctx context.Context, conn *pgx.Conn) error {
	if err := schema.Install(ctx, conn, s.schema, s.installation); err != nil {
		return err
	}
	s.rejected.Store(nil)
	s.claimedOnce.Do(func() { close(s.claimed) })
	return nil
}

// Rejects reports whether an error of Open or Ready means that the database cannot be used until
// somebody changes it or its URL.
func Rejects(err error) bool {
	return schema.RejectsStatement(err) || schema.RejectsLogin(err) ||
		errors.Is(err, schema.ErrPooler) || errors.Is(err, schema.ErrOtherInstallation) ||
		errors.Is(err, schema.ErrEncoding)
}
