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

// patient is the installation, with what several checks need of it. Each of the functions does its
// work once, whoever asks first, and gives everybody the same answer.
type patient struct {
	Config
	// broker connects to every account.
	broker func() (*streams.Conns, error)
	// servers are those of the broker, accounts its accounts, cloud the streams of the account
	// CLOUD.
	servers  func() ([]survey.Server, error)
	accounts func() ([]survey.Account, error)
	cloud    func() ([]survey.Stream, error)
	hubLogs  func() (hubLogList, error)
	// database asks the database for everything that is looked at.
	database func() (databaseFacts, error)
	// metrics are those of the service on this machine.
	metrics func() (map[string]*dto.MetricFamily, error)

	mu     sync.Mutex
	closed bool
	conns  *streams.Conns
}

var (
	// errNoService says that something could be asked only of a service that runs on this machine.
	errNoService = errors.New("no service runs here")
	// errNoBroker says that something could be asked only of the broker; why it cannot be reached
	// is told once.
	errNoBroker = errors.New("the broker cannot be reached")
)

func newPatient(ctx context.Context, cfg Config) *patient {
	p := &patient{Config: cfg}
	p.broker = sync.OnceValues(func() (*streams.Conns, error) { return p.connect(ctx) })
	p.servers = sync.OnceValues(func() ([]survey.Server, error) {
		return ofBroker(
			p,
			func(conns *streams.Conns) ([]survey.Server, error) { return survey.Servers(ctx, conns.Sys) },
		)
	})
	p.accounts = sync.OnceValues(func() ([]survey.Account, error) {
		return ofBroker(
			p,
			func(conns *streams.Conns) ([]survey.Account, error) { return survey.Accounts(ctx, conns) },
		)
	})
	p.cloud = sync.OnceValues(func() ([]survey.Stream, error) {
		return ofBroker(p, func(conns *streams.Conns) (all []survey.Stream, err error) {
			err = survey.Streams(ctx, conns.Cloud, func(page []survey.Stream) bool {
				all = append(all, page...)
				return false
			})
			return all, err
		})
	})
	p.hubLogs = sync.OnceValues(func() (hubLogList, error) {
		return ofBroker(
			p,
			func(conns *streams.Conns) (hubLogList, error) { return listHubLogs(ctx, conns), nil },
		)
	})
	p.database = sync.OnceValues(func() (databaseFacts, error) {
		if cfg.PostgresErr != nil {
			return databaseFacts{}, fmt.Errorf("%w: %w", errNoDatabase, cfg.PostgresErr)
		}
		return askDatabase(ctx, cfg.PostgresURL)
	})
	p.metrics = sync.OnceValues(
		func() (map[string]*dto.MetricFamily, error) { return scrape(ctx, cfg.Bound.Admin) },
	)
	return p
}

func ofBroker[T any](p *patient, ask func(*streams.Conns) (T, error)) (T, error) {
	conns, err := p.broker()
	if err != nil {
		var nothing T
		return nothing, errNoBroker
	}
	return ask(conns)
}

func (p *patient) connect(ctx context.Context) (*streams.Conns, error) {
	if p.CredentialsErr != nil {
		return nil, p.CredentialsErr
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	quiet := streams.WithLog(slog.New(slog.DiscardHandler))
	conns, err := streams.Connect(ctx, p.Credentials, nats.RetryOnFailedConnect(false), quiet)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed { // the checks have been given up
		conns.Close()
		return nil, context.Canceled
	}
	p.conns = conns
	return conns, nil
}

// close ends the connections. A check that was left to itself finds them closed.
func (p *patient) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.conns != nil {
		p.conns.Close()
	}
}

// path names a file of the data directory.
func (p *patient) path(name ...string) string {
	return filepath.Join(append([]string{p.DataDir}, name...)...)
}

// running says that a service has written where it listens.
func (p *patient) running() bool { return p.Bound.Admin != "" }

// live says that the installation is not for trials.
func (p *patient) live() bool { return p.Started == nil || p.Started.Environment != "dev" }

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
		return nil, fmt.Errorf("its metrics answer with status %d", response.StatusCode)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(response.Body)
}

// get asks the service on this machine.
func get(ctx context.Context, url string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{
		Timeout:   reachTimeout,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	return client.Do(request)
}

// gauge gives a metric without labels, or the one with a label's value; false when the service has
// none.
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

// ago writes how long something has been so, for people.
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

// size writes a number of bytes for people.
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

// several names a few of many.
func several(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
