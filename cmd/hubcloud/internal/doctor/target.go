package doctor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

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

var (
	// errNoService reports that no service runs on this machine to ask for its metrics.
	errNoService = errors.New("no service runs here")
	// errNoBroker reports that there is no connection to the broker. The component broker has the
	// cause.
	errNoBroker = errors.New("the broker cannot be reached")
)

func newTarget(ctx context.Context, cfg Config) *target {
	t := &target{Config: cfg}
	t.broker = sync.OnceValues(func() (*streams.Conns, error) { return t.connect(ctx) })
	t.servers = sync.OnceValues(func() ([]survey.Server, error) {
		return ofBroker(t, func(conns *streams.Conns) ([]survey.Server, error) {
			return survey.Servers(ctx, conns.Sys)
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

// scrape reads the metrics of the service on this machine.
func scrape(ctx context.Context, admin string) (map[string]*dto.MetricFamily, error) {
	if admin == "" {
		return nil, errNoService
	}
	response, err := get(ctx, "http://"+admin+"/metrics")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answered with status %d", response.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// get sends a request to the service on this machine.
func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout:   connectTimeout,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	return client.Do(request)
}

// gauge returns the value of a gauge or counter: the one without labels, or the one with the given
// label and value. It returns false when the service has no such metric.
func gauge(families map[string]*dto.MetricFamily, name string, label ...string) (float64, bool) {
	for _, m := range families[name].GetMetric() {
		if !carries(m, label) {
			continue
		}
		switch {
		case m.GetGauge() != nil:
			return m.GetGauge().GetValue(), true
		case m.GetCounter() != nil:
			return m.GetCounter().GetValue(), true
		}
	}
	return 0, false
}

// carries reports whether a metric has a label with a value.
func carries(m *dto.Metric, label []string) bool {
	if len(label) == 0 {
		return true
	}
	for _, pair := range m.GetLabel() {
		if pair.GetName() == label[0] && pair.GetValue() == label[1] {
			return true
		}
	}
	return false
}

// ago formats a duration for people.
func ago(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
}

// size formats a number of bytes for people.
func size(n int64) string {
	value, unit := float64(n), 0
	units := []string{"bytes", "kB", "MB", "GB", "TB", "PB"}
	for value >= 1000 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	if unit == 0 || value >= 100 {
		return fmt.Sprintf("%.0f %s", value, units[unit])
	}
	return fmt.Sprintf("%.1f %s", value, units[unit])
}

// several returns the first five names and the number of the others.
func several(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
