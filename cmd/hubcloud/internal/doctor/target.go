package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"

	"github.com/nats-io/nats.go"

	"hubcloud/cmd/hubcloud/internal/installation"
	"hubcloud/streams"
)

// errNoService reports that no service runs on this machine.
var errNoService = errors.New("no service runs here")

// target is the installation that is checked. Its functions fetch data that several checks need;
// each fetches once, at the first call, and returns the same result to all callers.
type target struct {
	Config
	survey
	// database has all checked facts of the database.
	database func() (databaseFacts, error)
	// answer has the findings of the running service, by component.
	answer func() (map[string]*findings, error)

	mu     sync.Mutex
	closed bool
	opened *streams.Conns
}

func newTarget(ctx context.Context, cfg Config) *target {
	t := &target{Config: cfg}
	t.survey = newSurvey(ctx, sync.OnceValues(func() (*streams.Conns, error) {
		return t.connect(ctx)
	}))
	t.database = sync.OnceValues(func() (databaseFacts, error) {
		if cfg.PostgresErr != nil {
			return databaseFacts{}, fmt.Errorf("%w: %w", errNoDatabase, cfg.PostgresErr)
		}
		return askDatabase(ctx, cfg.PostgresURL)
	})
	t.answer = sync.OnceValues(func() (map[string]*findings, error) {
		return askService(ctx, cfg.Bound.Admin, cfg.Limits)
	})
	return t
}

// askService asks the service with an admin address for its findings.
func askService(
	ctx context.Context, admin string, limits Limits,
) (found map[string]*findings, err error) {
	if admin == "" {
		return nil, errNoService
	}
	text, err := json.Marshal(limits)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(
		ctx, http.MethodGet,
		installation.LocalURL(admin)+Path+"?limits="+url.QueryEscape(string(text)), nil,
	)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", installation.UserAgent())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the service answers with status %d", response.StatusCode)
	}
	if err := json.NewDecoder(response.Body).Decode(&found); err != nil {
		return nil, fmt.Errorf("the service's answer is invalid: %w", err)
	}
	return found, nil
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
	if t.closed { // Check has given up
		conns.Close()
		return nil, context.Canceled
	}
	t.opened = conns
	return conns, nil
}

// close closes the connection to the broker, also for checks that still run.
func (t *target) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.opened != nil {
		t.opened.Close()
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

// embedsBroker reports whether the data directory has the streams of an embedded broker, as far as
// is known.
func (t *target) embedsBroker() bool {
	return t.DataDir != "" && !t.Elsewhere && (t.Started == nil || !t.Started.ExternalBroker)
}
