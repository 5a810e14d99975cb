package readmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"hubcloud/projections/database"
	"hubcloud/projections/internal/position"
	"hubcloud/projections/internal/query"
	"hubcloud/projections/schema"
	"hubcloud/projections/statemodel"
)

// Config configures a Store.
type Config struct {
	// URL is the database's connection string, in libpq's form. Required.
	URL string
	// InstallationID names the installation that the database must belong to. Required.
	InstallationID string
	// MaxConns is the most connections that queries use. The store and a projector use up to five
	// more. Defaults to 16.
	MaxConns int32
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

// Validate returns an error that names the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.URL == "":
		return errors.New("read models: URL: must not be empty")
	case c.InstallationID == "":
		return errors.New("read models: InstallationID: must not be empty")
	case c.MaxConns < 1:
		return fmt.Errorf("read models: MaxConns: is %d, must be at least 1", c.MaxConns)
	}
	return nil
}

// warnInterval is the least time between two warnings about a database that cannot be reached.
const warnInterval = 10 * time.Second

// Store has the queries on the read models. All methods may be called concurrently.
type Store struct {
	logger       *slog.Logger
	schema       string
	installation string
	dial         *pgx.ConnConfig
	pool         *pgxpool.Pool
	// queries fail with ErrBuilding until the first build is complete.
	queries *query.Queries
	// unchecked are the same queries, which answer also before.
	unchecked *query.Queries
	// complete is closed once the first build of the read models is complete.
	complete     chan struct{}
	completeOnce sync.Once

	// directory is the checkpoint of the directory's projection, as last read or notified.
	directory position.Position
	// buildTarget is the sequence at which the first build is complete; 0 if unknown.
	buildTarget atomic.Uint64
	// away means that reads are waiting for the database.
	away atomic.Bool

	stopListening context.CancelFunc
	listening     sync.WaitGroup
}

// Open connects to the database and creates the schema of the read models if it does not exist. If
// the database is away, Open waits for it until ctx ends. It fails with schema.ErrOtherInstallation
// or schema.ErrEncoding if the database cannot be used.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	s := &Store{
		logger: cfg.Logger, schema: schema.Name(), installation: cfg.InstallationID,
		complete: make(chan struct{}),
	}
	pooling, err := database.Config(cfg.URL, s.schema)
	if err != nil {
		return nil, err
	}
	pooling.MaxConns = cfg.MaxConns
	if pooling.ConnConfig.RuntimeParams["application_name"] == "" {
		pooling.ConnConfig.RuntimeParams["application_name"] = "hubcloud"
	}
	s.dial = pooling.ConnConfig.Copy()
	if err := s.installSchema(ctx); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, pooling); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(newPoolCollector(s.pool))
	}
	s.queries, s.unchecked = query.New(&completeOnly{s.pool, s.complete}), query.New(s.pool)
	if err := s.checkComplete(ctx, s.unchecked); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("read models: %w", err)
	}
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
	return database.WithConn(ctx, s.dial, fn)
}

// installSchema creates the schemas. It tries again until the database answers or ctx ends.
func (s *Store) installSchema(ctx context.Context) error {
	warn := rate.Sometimes{First: 1, Interval: warnInterval}
	for wait := database.FirstRetry; ; wait = min(2*wait, database.LastRetry) {
		err := s.withConn(ctx, func(conn *pgx.Conn) error {
			if err := schema.Install(ctx, conn, s.schema, s.installation); err != nil {
				return err
			}
			return statemodel.Install(ctx, conn)
		})
		switch {
		case err == nil, database.RejectsStatement(err), database.RejectsLogin(err),
			errors.Is(err, schema.ErrOtherInstallation), errors.Is(err, schema.ErrEncoding):
			return err
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		}
		warn.Do(func() {
			s.logger.Warn("database not reached", "error", err, "retry_ms", wait.Milliseconds())
		})
		database.Pause(ctx, wait)
	}
}
