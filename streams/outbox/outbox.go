package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/domain"
	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

var (
	// ErrFull is returned by Put and HasSpace when the queue is full. The mail is not stored.
	ErrFull = errors.New("the outbox is full")
	// ErrSenderFull is returned by Put and HasSpace when too many mails of the sender are waiting.
	// The mail is not stored.
	ErrSenderFull = errors.New("too many mails of one sender are waiting in the outbox")
	// ErrRejected is returned by a delivery for a mail that must not be tried again.
	ErrRejected = errors.New("the mail is rejected")
	// ErrObsolete is returned by a delivery for a mail that has no recipient any more.
	ErrObsolete = errors.New("the mail is obsolete")
	// ErrUnreachable is returned by a delivery when no mail can be delivered at the moment.
	ErrUnreachable = errors.New("no mail can be delivered")
)

// Limits of the queue.
const (
	// Capacity is how many ordinary mails may wait, and AlarmCapacity and UrgentCapacity how many
	// alarms and urgent ones besides. A service whose mail server is away for a week queues far
	// fewer.
	Capacity       = 10_000
	AlarmCapacity  = 10_000
	UrgentCapacity = 10_000
	// DefaultPerSender is how many mails of one sender may wait, and how many alarms besides.
	DefaultPerSender = 200
	// MaxContent is the most bytes that a mail may have.
	MaxContent = 64 << 10
	// Grace is how long deliveries under way may go on after the end of Run's context.
	Grace = 2 * time.Second
)

// Stream is the name of the queue's stream in the account CLOUD.
const Stream = "MAIL"

const (
	// The subjects of mails are <urgentPrefix><recipient>, and <alarmPrefix><sender>.<recipient> or
	// <ordinaryPrefix><sender>.<recipient>, with sender and recipient hashed.
	urgentPrefix   = "mail.urgent."
	alarmPrefix    = "mail.alarm."
	ordinaryPrefix = "mail.ordinary."
	// duplicateWindow is how long the broker recognizes an id that was stored before. putTimeout is
	// well below.
	duplicateWindow = 2 * time.Minute
	// putTimeout bounds Put with its tries, putPause is the pause between two.
	putTimeout = 10 * time.Second
	putPause   = 50 * time.Millisecond
	// maxHeader is the space for headers.
	maxHeader = 4 << 10

	headerID      = jetstream.MsgIDHeader // the broker recognizes duplicates by it
	headerExpires = "Hubcloud-Expires"
)

// declaration returns the stream's configuration. It has no age limit: each mail has an expiry of
// its own, and the end of a mail is logged.
func declaration(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        Stream,
		Description: "mails that wait for delivery",
		Subjects:    []string{urgentPrefix + "*", alarmPrefix + "*.*", ordinaryPrefix + "*.*"},
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
		Discard:     jetstream.DiscardNew,
		MaxMsgs:     Capacity + AlarmCapacity + UrgentCapacity,
		MaxMsgSize:  MaxContent + maxHeader,
		Duplicates:  duplicateWindow,
		AllowDirect: true,
	}
}

// Config configures an Outbox. The zero value is usable.
type Config struct {
	// Replicas is the number of copies of the stream on the broker: 1, 3 or 5. 0 keeps the number
	// of an existing stream, and creates a new one with 1.
	Replicas int `check:"0 to 5"`
	// PerSender is how many mails of one sender may wait, and how many alarms besides. Defaults to
	// DefaultPerSender.
	PerSender int `check:"at least 0"`
	// FirstPause is how long a mail waits after its first failure. Each further failure doubles the
	// pause, up to MaxPause. Default to 5 s and 15 min.
	FirstPause, MaxPause time.Duration `check:"at least 0"`
	// FirstServerPause and MaxServerPause are the same for all mails together, after
	// ErrUnreachable. Default to 1 s and 1 min.
	FirstServerPause, MaxServerPause time.Duration `check:"at least 0"`
	// Now is the clock by which mails expire. Defaults to time.Now.
	Now func() time.Time
	// Logger gets deliveries and failures. Defaults to slog.Default().
	Logger *slog.Logger
	// Metrics registers the package's metrics. Defaults to none.
	Metrics prometheus.Registerer
	// Tracer starts a span for each Put, and for each delivery, which continues the trace of the
	// Put. Defaults to none.
	Tracer telemetry.Tracer
}

// WithDefaults returns the configuration with a default in each field that has one.
func (c Config) WithDefaults() Config {
	c.PerSender = cmp.Or(c.PerSender, DefaultPerSender)
	c.FirstPause = cmp.Or(c.FirstPause, 5*time.Second)
	c.MaxPause = cmp.Or(c.MaxPause, 15*time.Minute)
	c.FirstServerPause = cmp.Or(c.FirstServerPause, time.Second)
	c.MaxServerPause = cmp.Or(c.MaxServerPause, time.Minute)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Outbox is the queue. It is safe for concurrent use.
type Outbox struct {
	cfg     Config
	nc      *nats.Conn
	js      jetstream.JetStream
	metrics *metrics
}

// Open opens the queue and creates its stream if it is missing. A stream with another configuration
// is streams.ErrIncompatible.
func Open(ctx context.Context, conns *streams.Conns, cfg Config) (*Outbox, error) {
	cfg = cfg.WithDefaults()
	if err := domain.CheckFields("outbox", cfg); err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	js, err := jetstream.New(conns.Cloud)
	if err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	if _, err := streams.Declare(ctx, js, declaration(cfg.Replicas)); err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	return &Outbox{cfg: cfg, nc: conns.Cloud, js: js, metrics: newMetrics(cfg.Metrics)}, nil
}
