package commands

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/hubbridge/bucket"
	"hubcloud/hubbridge/calls"
	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

// Hubs are asked to run commands (devices.Devices).
type Hubs interface {
	// MustBeOnline refuses a hub that is not connected with hub_offline.
	MustBeOnline(ctx context.Context, hub domain.HubID) error
	// Command hands a command to its hub, which runs an id once.
	Command(ctx context.Context, c domain.Command, id string) (domain.Channel, error)
}

// Logs are the hubs' logs (hublog.Logs).
type Logs interface {
	AppendCommand(ctx context.Context, hub domain.HubID, payload []byte, header nats.Header) (uint64, error)
	// Commands gives the newest limit of what was appended at since or later, oldest first.
	Commands(ctx context.Context, hub domain.HubID, since time.Time, limit int) ([][]byte, error)
}

// Places bound what is under way (calls.Places).
type Places interface {
	// Take counts one more call to a hub of an organization until release is called, or refuses it at once with rate_limited.
	Take(org string, hub domain.HubID) (release func(), err error)
}

// BucketName is the name of the bucket of reservations.
const BucketName = "idempotency"

// Config is what Commands may be told. ReplicaID is required.
type Config struct {
	// ReplicaID ([A-Za-z0-9_-]+) names this replica in reservations; no other replica has it.
	ReplicaID string
	// Window is how long an idempotency key stands for its command; 0 is 24 h. The bucket must keep what is written at least as long.
	Window time.Duration
	// HubTimeout is how long a hub may take to answer, as Hubs has it; 0 is 10 s.
	HubTimeout time.Duration
	// Places bounds the commands under way, together with those who wait for the same command; nil is calls.NewPlaces with its defaults.
	Places Places
	// Now is the clock; nil is time.Now. The clocks of replicas must agree to some seconds.
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
	// storageTime is how long storage may take for what belongs to a command, beside the hub's own time.
	storageTime = 5 * time.Second
	// holdSlack is what a reservation is held for beyond the hub's time: what storage takes as a rule. Who is overtaken does no harm.
	holdSlack = 2 * time.Second
	// closingTime is how long a flight that is ended may take to let go of its reservation.
	closingTime = time.Second
)

// ErrClosed says that a command came after Close; nothing was done.
var ErrClosed = errors.New("commands: closed")

// Commands sends commands. Safe for concurrent use.
type Commands struct {
	cfg      Config
	hubs     Hubs
	logs     Logs
	reserved bucket.Bucket
	metrics  *metrics
	cloud    *nats.Conn
	// process names this process, and presence answers whoever asks whether it is there.
	process  string
	presence *nats.Subscription

	// ctx ends flights that Close does not wait for.
	ctx    context.Context
	cancel context.CancelFunc
	group  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	flights map[flightKey]*flight
}

// New makes Commands that ask hubs, write to their logs, and reserve keys in the bucket of the account that conns.Cloud is connected to. The
// caller ends them with Close, before it closes hubs, logs and connections.
func New(conns *streams.Conns, logs Logs, hubs Hubs, cfg Config) *Commands {
	if cfg.Window <= 0 {
		cfg.Window = streams.DefaultIdempotencyWindow
	}
	if cfg.HubTimeout <= 0 {
		cfg.HubTimeout = defaultHubTimeout
	}
	if cfg.Places == nil {
		cfg.Places = calls.NewPlaces(calls.Bounds{}, nil)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	c := &Commands{
		cfg: cfg, hubs: hubs, logs: logs, reserved: bucket.New(conns.Cloud, BucketName),
		cloud: conns.Cloud, process: cfg.ReplicaID + "." + rand.Text(),
		flights: make(map[flightKey]*flight),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.metrics = newMetrics(cfg.Metrics)
	var err error
	// Without the subscription, or without the answer, other processes take over what this one holds: that does no harm.
	c.presence, err = c.cloud.Subscribe(streams.CommandsSubject(c.process), func(msg *nats.Msg) { _ = msg.Respond(nil) })
	if err != nil {
		c.cfg.Log.Warn("other processes cannot see that this one is there", "error", err)
	}
	return c
}

// Close takes no more commands and waits for those under way until ctx ends; then it ends them, which takes a second at most. They are as after a
// crash: sent again with their key they go on.
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
	if c.presence != nil {
		_ = c.presence.Unsubscribe() // fails only when the connection is gone, and the subscription with it
	}
}
