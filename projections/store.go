package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"hubcloud/projections/internal/query"
	"hubcloud/streams/telemetry"
)

// StoreConfig says where the read models are.
type StoreConfig struct {
	// URL is the database's connection string, as libpq writes it. Required.
	URL string
	// InstallationID names the installation; the database is claimed for it, or refused when it is
	// another's. Required.
	InstallationID string
	// MaxConns is the most connections that queries use. 0: 16. The projector and the listener use
	// up to four more.
	MaxConns int32
	// Log gets what the store does. Nil: slog.Default().
	Log *slog.Logger
	// Metrics gets the store's metrics. Nil: they are not published.
	Metrics prometheus.Registerer
	// Tracer begins a span for each batch of a projection; the zero value none.
	Tracer telemetry.Tracer
}

const (
	defaultMaxConns = 16
	// How long is waited between tries to reach the database: twice as long each time.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// retryTell is the time between two lines about a database that cannot be reached.
	retryTell = 10 * time.Second
	// One query to a database that answers takes milliseconds; one that does not answer is left
	// after this long.
	answerLimit = 5 * time.Second
)

// Store is the read models: queries on them, and what builds them.
type Store struct {
	log     *slog.Logger
	metrics *metrics
	tracer  telemetry.Tracer
	schema  string
	// installation is whose the database is.
	installation string
	dial         *pgx.ConnConfig
	pool         *pgxpool.Pool
	// queries are those of the read models, which wait for nothing: ErrBuilding until all of it is
	// there. control are those about them.
	queries, control *query.Queries
	// complete is closed once the read models have been complete.
	complete     chan struct{}
	completeOnce sync.Once

	// directory and presence are how far the read models are, as far as this process knows.
	directory, presence progress
	// target is how far the directory is to be built before it is complete, as far as this process
	// knows.
	target atomic.Uint64
	// loadFrom is how many events the directory must have for a first build to load them at once.
	loadFrom uint64
	// retryStopped is how long a stopped projection waits before it tries its event again.
	retryStopped time.Duration
	// away says that reads wait for the database.
	away atomic.Bool

	close  context.CancelFunc
	closed sync.WaitGroup
}

// Open connects to the database, waiting for it until ctx ends, and creates the schema of the read
// models if it is not there. It fails with ErrOtherInstallation or ErrEncoding when the database
// cannot be used.
func Open(ctx context.Context, cfg StoreConfig) (*Store, error) {
	s := &Store{
		log: cfg.Log, tracer: cfg.Tracer, schema: schemaName(), installation: cfg.InstallationID,
		complete: make(chan struct{}), loadFrom: loadFrom,
		retryStopped: retryStopped,
	}
	if s.log == nil {
		s.log = slog.Default()
	}
	pooling, err := poolConfig(cfg.URL, s.schema)
	if err != nil {
		return nil, err
	}
	if pooling.MaxConns = cfg.MaxConns; cfg.MaxConns == 0 {
		pooling.MaxConns = defaultMaxConns
	}
	if pooling.ConnConfig.RuntimeParams["application_name"] == "" {
		pooling.ConnConfig.RuntimeParams["application_name"] = "hubcloud"
	}
	s.dial = pooling.ConnConfig.Copy()
	if s.metrics, err = newMetrics(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	err = s.retry(ctx, "reach the database", func(ctx context.Context) error {
		return s.with(
			ctx,
			func(conn *pgx.Conn) error { return install(ctx, conn, s.schema, cfg.InstallationID) },
		)
	})
	if err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, pooling); err != nil {
		return nil, fmt.Errorf("read models: %w", err)
	}
	if cfg.Metrics != nil {
		cfg.Metrics.MustRegister(newPoolCollector(s.pool))
	}
	s.queries, s.control = query.New(&gate{s.pool, s.complete}), query.New(s.pool)
	if err := s.lookComplete(ctx, s.control); err != nil {
		s.pool.Close()
		return nil, fmt.Errorf("read models: %w", err)
	}
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.close = cancel
	s.closed.Go(func() { s.listen(listening) })
	return s, nil
}

// poolConfig reads a database's connection string, for connections that find a schema's tables.
func poolConfig(url, schema string) (*pgxpool.Config, error) {
	pooling, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read models: database URL: %w", err)
	}
	pooling.ConnConfig.RuntimeParams["search_path"] = schema
	pooling.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pooling.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = strconv.FormatInt(
		transactionLimit.Milliseconds(), 10,
	)
	if pooling.ConnConfig.ConnectTimeout == 0 {
		pooling.ConnConfig.ConnectTimeout = answerLimit
	}
	// What is asked of a machine that has vanished would be waited for five minutes and more.
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{
			Enable:   true,
			Idle:     5 * time.Second,
			Interval: 2 * time.Second,
			Count:    3,
		},
	}
	pooling.ConnConfig.DialFunc = dialer.DialContext
	return pooling, nil
}

// Close ends the store's connections and its goroutine, and waits for queries under way.
// RunProjector and Access.Run must have ended.
func (s *Store) Close() {
	s.close()
	s.closed.Wait()
	s.pool.Close()
}

// with runs fn on a connection of its own.
func (s *Store) with(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	return onConn(ctx, s.dial, fn)
}

// onConn runs fn on a connection that ends with it.
func onConn(ctx context.Context, dial *pgx.ConnConfig, fn func(conn *pgx.Conn) error) error {
	dialing, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	conn, err := pgx.ConnectConfig(dialing, dial.Copy())
	if err != nil {
		return err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing) // whatever it was for is settled by now
	}()
	return fn(conn)
}

// retry runs fn until it succeeds, fails for good, or ctx ends.
func (s *Store) retry(ctx context.Context, what string, fn func(ctx context.Context) error) error {
	tell := rate.Sometimes{First: 1, Interval: retryTell}
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := fn(ctx)
		switch {
		case err == nil || isPermanent(err) || errors.Is(err, ErrOtherInstallation) || errors.Is(err, ErrEncoding):
			return err
		case refusesLogin(err):
			return err
		case ctx.Err() != nil:
			return errors.Join(err, ctx.Err())
		}
		tell.Do(func() { s.log.Warn("cannot "+what+"; trying again", "error", err) })
		pause(ctx, wait)
	}
}

// pause waits, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
