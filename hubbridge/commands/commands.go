package commands

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/idempotency"
	"hubcloud/hubbridge/rpc"
	"hubcloud/streams/allowance"
	"hubcloud/streams/telemetry"
)

// Hubs are asked to run commands (rpc.Devices).
type Hubs interface {
	// MustBeOnline refuses a hub that is not connected with hub_offline.
	MustBeOnline(ctx context.Context, hub domain.HubID) error
	// Command hands a command to its hub, which runs an id once.
	Command(ctx context.Context, c domain.Command, id string) (domain.Channel, error)
}

// Logs are the hubs' logs (hublog.Logs).
type Logs interface {
	AppendCommand(
		ctx context.Context, hub domain.HubID, payload []byte, header nats.Header,
	) (uint64, error)
	// Commands gives the newest limit of what was appended at since or later, oldest first.
	Commands(ctx context.Context, hub domain.HubID, since time.Time, limit int) ([][]byte, error)
}

// Config is what Commands may be told. Keys is required.
type Config struct {
	// Keys reserves idempotency keys. The caller closes it after Commands.
	Keys *idempotency.Keys
	// HubTimeout is how long a hub may take to answer, as Hubs has it; 0 is 10 s.
	HubTimeout time.Duration
	// Limiter bounds the commands in flight, together with the callers that wait for the same
	// command. Defaults to an rpc.Limiter with default limits.
	Limiter *rpc.Limiter
	// Admit is asked for room on the disk before a command is begun; its error is returned.
	// Outcomes of commands are stored without asking. Nil admits everything.
	Admit func(bytes int) error
	// PerHour is how many commands an organization may send within an hour; 0 is no bound. Each
	// leaves two records in its hub's log.
	PerHour int
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Log gets one line for each answer to a command; nil is the default logger.
	Log *slog.Logger
	// Metrics gets the metrics; nil for none.
	Metrics prometheus.Registerer
	// Tracer begins a span for each command and its steps; the zero value none.
	Tracer telemetry.Tracer
}

const (
	defaultHubTimeout = 10 * time.Second
	// storageTime is how long storage may take for what belongs to a command, beside the hub's own
	// time.
	storageTime = 5 * time.Second
	// holdSlack is what a reservation is held for beyond the hub's time: what storage takes as a
	// rule. Who is overtaken does no harm.
	holdSlack = 2 * time.Second
	// patience bounds the wait for a leader of the hub's log, and appendTime one try to append a
	// record.
	patience   = 15 * time.Second
	appendTime = 3 * time.Second
	// appendPause is the first pause between two tries; it doubles up to maxAppendPause.
	appendPause    = 20 * time.Millisecond
	maxAppendPause = 500 * time.Millisecond
	// closingTime is how long a flight that is ended may take to let go of its reservation.
	closingTime = time.Second
)

// ErrClosed says that a command came after Close.
var ErrClosed error = domain.Unavailable("the service is stopping; the command was not sent")

// Commands sends commands. Safe for concurrent use.
type Commands struct {
	cfg     Config
	hubs    Hubs
	logs    Logs
	metrics *metrics
	sent    *allowance.Hourly // by organization

	// ctx ends flights that Close does not wait for.
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	flights map[flightKey]*flight
}

// New makes Commands that ask hubs and write to their logs. The caller ends them with Close, before
// it closes hubs, logs and keys.
func New(logs Logs, hubs Hubs, cfg Config) *Commands {
	if cfg.HubTimeout <= 0 {
		cfg.HubTimeout = defaultHubTimeout
	}
	if cfg.Limiter == nil {
		cfg.Limiter = rpc.NewLimiter(rpc.Limits{}, nil)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Admit == nil {
		cfg.Admit = func(int) error { return nil }
	}
	c := &Commands{
		cfg:     cfg,
		hubs:    hubs,
		logs:    logs,
		sent:    allowance.NewHourly(cfg.PerHour),
		flights: make(map[flightKey]*flight),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.metrics = newMetrics(cfg.Metrics)
	return c
}

// Close takes no more commands and waits for those under way until ctx ends; then it ends them,
// which takes a second at most. They are as after a crash: sent again with their key they go on.
func (c *Commands) Close(ctx context.Context) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		c.group.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	c.cancel()
	<-ended
}
