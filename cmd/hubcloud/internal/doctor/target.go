package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats.go"
	dto "github.com/prometheus/client_model/go"

	"hubcloud/cmd/hubcloud/internal/doctor/survey"
	"hubcloud/streams"
)

// target is the installation that is checked. Its functions fetch data that several checks need;
// each fetches once, at the first call, and returns the same result to all callers.
type target struct {
	Config
	// broker connects to every account.
	broker func() (*streams.Conns, error)
	// servers and accounts are the broker's. cloud are the streams of the account CLOUD.
	servers  func() ([]survey.Server, error)
	accounts func() ([]survey.Account, error)
	cloud    func() ([]survey.Stream, error)
	hubLogs  func() (hubLogList, error)
	// database has all checked facts of the database.
	database func() (databaseFacts, error)
	// metrics are the metrics of the service on this machine.
	metrics func() (map[string]*dto.MetricFamily, error)

	mu     sync.Mutex
	closed bool
	conns  *streams.Conns
}

// errNoBroker reports that there is no connection to the broker. The component broker has the
// cause.
var errNoBroker = errors.New("the broker cannot be reached")

func newTarget(ctx context.Context, cfg Config) *target {
	t := &target{Config: cfg}
	t.broker = sync.OnceValues(func() (*streams.Conns, error) { return t.connect(ctx) })
	t.servers = sync.OnceValues(func() ([]survey.Server, error) {
		return ofBroker(t, func(conns *streams.Conns) ([]survey.Server, error) {
			servers, err := survey.Servers(ctx, conns.Sys)
			if err != nil || conns.CloudSys == conns.Sys {
				return servers, err
			}
			durable, err := survey.Servers(ctx, conns.CloudSys)
			return append(servers, durable...), err
		})
	})
	t.accounts = sync.OnceValues(func() ([]survey.Account, error) {
		return ofBroker(t, func(conns *streams.Conns) ([]survey.Account, error) {
			return survey.Accounts(ctx, conns)
		})
	})
	t.cloud = sync.OnceValues(func() ([]survey.Stream, error) {
		return ofBroker(t, func(conns *streams.Conns) (all []survey.Stream, err error) {
			err = survey.Streams(ctx, conns.Cloud, func(page []survey.Stream) bool {
				all = append(all, page...)
				return false
			})
			return all, err
		})
	})
	t.hubLogs = sync.OnceValues(func() (hubLogList, error) {
		return ofBroker(
			t,
			func(conns *streams.Conns) (hubLogList, error) { return listHubLogs(ctx, conns), nil },
		)
	})
	t.database = sync.OnceValues(func() (databaseFacts, error) {
		if cfg.PostgresErr != nil {
			return databaseFacts{}, fmt.Errorf("%w: %w", errNoDatabase, cfg.PostgresErr)
		}
		return askDatabase(ctx, cfg.PostgresURL)
	})
	t.metrics = sync.OnceValues(
		func() (map[string]*dto.MetricFamily, error) { return scrape(ctx, cfg.Bound.Admin) },
	)
	return t
}

// ofBroker calls ask with the connection to the broker.
func ofBroker[T any](t *target, ask func(*streams.Conns) (T, error)) (T, error) {
	conns, err := t.broker()
	if err != nil {
		var nothing T
		return nothing, errNoBroker
	}
	return ask(conns)
}

func (t *target) connect(ctx context.Context) (*streams.Conns, error) {
	if t.CredentialsErr != nil {
		return nil, t.CredentialsErr
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	quiet := streams.WithLog(slog.New(slog.DiscardHandler))
	conns, err := streams.Connect(ctx, t.Credentials, nats.RetryOnFailedConnect(false), quiet)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed { // runChecks has given up
		conns.Close()
		return nil, context.Canceled
	}
	t.conns = conns
	return conns, nil
}

// close closes the connection to the broker, also for checks that still run.
func (t *target) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.conns != nil {
		t.conns.Close()
	}
}

// path returns the path of a file in the data directory.
func (t *target) path(name ...string) string {
	return filepath.Join(append([]string{t.DataDir}, name...)...)
}

// running reports whether the data directory has endpoints.json.
func (t *target) running() bool { return t.Bound.Admin != "" }

// live reports whether the installation is for production.
func (t *target) live() bool { return t.Started == nil || t.Started.Environment != "dev" }
