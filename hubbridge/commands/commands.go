package commands

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams/once"
	"hubcloud/streams/shares"
	"hubcloud/streams/telemetry"
)

// Logs are the event logs of hubs (feed.Logs).
type Logs interface {
	// AppendCommand appends a record of a command and returns its sequence.
	AppendCommand(ctx context.Context, hub domain.HubID, payload []byte) (uint64, error)
	// CommandRecords returns the records appended at since or later, oldest first: the newest limit
	// of them.
	CommandRecords(
		ctx context.Context, hub domain.HubID, since time.Time, limit int,
	) ([]domain.LoggedCommand, error)
}

// Config configures Commands. Keys is required.
type Config struct {
	// Keys reserves idempotency keys. The caller closes it after Commands.
	Keys *once.Keys `check:"set"`
	// HubTimeout is the timeout of the hubs (CallerConfig.Timeout). Defaults to domain.DefaultHubTimeout.
	HubTimeout time.Duration `check:"at least 0"`
	// Calls bounds the calls in flight, together with the callers that wait for them. Defaults to a
	// pool with CallLimits.
	Calls *shares.Pool
	// Shares reports PerHour; nil reports nothing.
	Shares *shares.Registry
	// Admit returns an error when the disk has no space for that many bytes; the error is the
	// command's. Outcomes of commands are stored without asking. Defaults to admitting everything.
	Admit func(bytes int) error
	// PerHour is how many commands an organization may send within an hour; 0 sets no bound. Each
	// leaves two records in its hub's event log.
	PerHour int `check:"at least 0"`
	// Now is the clock of records and of PerHour. Timeouts run in real time. Defaults to time.Now.
	Now func() time.Time
	// Logger gets one line for each answer to a command. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics is where the metrics are registered; nil registers nothing.
	Metrics prometheus.Registerer
	// Tracer starts a span for each command and its steps; the zero Tracer starts none.
	Tracer telemetry.Tracer
}

// WithDefaults returns a copy of c with the defaults for zero fields.
func (c Config) WithDefaults() Config {
	c.HubTimeout = cmp.Or(c.HubTimeout, domain.DefaultHubTimeout)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Calls == nil {
		c.Calls = NewCallPool(nil, CallLimits)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Admit == nil {
		c.Admit = func(int) error { return nil }
	}
	return c
}

const (
	// holdMargin is how much longer than the hub's timeout a call holds its reservation: the usual
	// time of storage. A call that takes longer may be overtaken, which does no harm.
	holdMargin = 2 * time.Second
	// leaderTimeout bounds the wait for a leader of the hub's event log, and appendTimeout one
	// attempt to append a record.
	leaderTimeout = 15 * time.Second
	appendTimeout = 3 * time.Second
	// appendPause is the first pause between two attempts; it doubles up to maxAppendPause.
	appendPause    = 20 * time.Millisecond
	maxAppendPause = 500 * time.Millisecond
	// cleanupTimeout bounds storing the outcome of a call, and abortTimeout does so once Close has
	// canceled the call.
	cleanupTimeout = 5 * time.Second
	abortTimeout   = time.Second
)

// ErrClosed is the error of a command that is sent after Close.
var ErrClosed error = domain.Unavailable("the service is stopping; the command was not sent")

// Commands sends commands. It is safe for concurrent use.
type Commands struct {
	cfg     Config
	hubs    *Devices
	logs    Logs
	metrics *metrics
	sent    *shares.Rate[string] // by organization
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool              // no new calls
	aborted bool              // calls are canceled
	calls   map[*call]bool    // in flight
	byKey   map[callKey]*call // those in flight that have an idempotency key
}

// New returns Commands that send to hubs and record in logs. The caller must call Close before it
// closes hubs, logs and cfg.Keys. The error is cfg.Validate's.
func New(logs Logs, hubs *Devices, cfg Config) (*Commands, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("commands", cfg); err != nil {
		return nil, err
	}
	return &Commands{
		cfg: cfg, hubs: hubs, logs: logs, metrics: newMetrics(cfg.Metrics),
		sent: shares.NewRate[string](
			cfg.Shares, shares.Hourly("commands", cfg.PerHour), cfg.Now(),
		),
		calls: make(map[*call]bool), byKey: make(map[callKey]*call),
	}, nil
}

// Close rejects new commands with ErrClosed and waits for the calls in flight. When ctx ends first,
// Close cancels the calls, which takes a second at most. A canceled call is like one after a crash:
// the same command with the same key continues it.
func (c *Commands) Close(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		c.abort()
		<-ended
	}
}

// abort cancels the calls in flight.
func (c *Commands) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	for call := range c.calls {
		call.cancel()
	}
}

func (c *Commands) isAborted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.aborted
}
