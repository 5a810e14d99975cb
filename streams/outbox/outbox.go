package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

var (
	// ErrFull says that the queue holds as many mails as it may; the mail is not stored.
	ErrFull = errors.New("the outbox is full")
	// ErrRefused, from a delivery, says that this mail is never to be tried again.
	ErrRefused = errors.New("the mail is refused for good")
	// ErrObsolete, from a delivery, says that nobody wants this mail any more.
	ErrObsolete = errors.New("the mail is not wanted any more")
	// ErrUnreachable, from a delivery, says that no mail can be delivered at the moment.
	ErrUnreachable = errors.New("no mail can be delivered")
)

// Limits of the queue.
const (
	// Capacity is how many mails may wait. What a service writes in a week while its mail server is away is far below.
	Capacity = 10_000
	// MaxContent is the most bytes that a mail may have.
	MaxContent = 64 << 10
	// Grace is how long deliveries under way may go on after the end of Run's context.
	Grace = 2 * time.Second
)

// Stream is the stream that the queue is kept in, in the account CLOUD: operators look at how long it is.
const Stream = "MAIL"

const (
	subject      = "mail.waiting"
	consumerName = "delivery"
	// duplicateWindow is how long the broker knows an id again. putPatience, in which Put tries, is well below.
	duplicateWindow = 2 * time.Minute
	putPatience     = 10 * time.Second
	putPause        = 50 * time.Millisecond
	// maxHeader leaves room for the headers.
	maxHeader = 4 << 10

	headerID      = "Nats-Msg-Id" // the broker's own name: it finds duplicates by it
	headerExpires = "Hubcloud-Expires"
	// codeStoreFailed is the broker's error for a stream that has reached a limit and keeps what it has.
	codeStoreFailed = 10077
)

// declaration declares the stream. A mail is removed once it is done; a full queue refuses what is new; no age is set, since each
// mail has its own, and what ends one is to be told.
func declaration(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        Stream,
		Description: "mails that wait for delivery",
		Subjects:    []string{subject},
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
		Discard:     jetstream.DiscardNew,
		MaxMsgs:     Capacity,
		MaxMsgSize:  MaxContent + maxHeader,
		Duplicates:  duplicateWindow,
		AllowDirect: true,
	}
}

// Config is what an Outbox needs.
type Config struct {
	// Replicas of the stream on the broker (1, 3 or 5); 0 leaves them as they are, and makes one.
	Replicas int
	// FirstPause is how long a mail waits after its first failure; each further one doubles it, up to MaxPause. 0 stands for 5 s and 15 min.
	FirstPause, MaxPause time.Duration
	// FirstClosed and MaxClosed are the same for all mails together, after ErrUnreachable. 0 stands for 1 s and 1 min.
	FirstClosed, MaxClosed time.Duration
	// Now is the clock by which mails expire; nil stands for time.Now.
	Now func() time.Time
	// Log gets what fails; nil discards it.
	Log *slog.Logger
	// Metrics is where the package's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Tracer begins a span for each mail that is put into the queue, and for each try to deliver one, which goes on with the trace of the former; the zero value none.
	Tracer telemetry.Tracer
}

// Outbox is the queue. Safe for concurrent use.
type Outbox struct {
	cfg     Config
	nc      *nats.Conn
	js      jetstream.JetStream
	metrics *metrics
}

// Open opens the queue, and makes it if it is absent. One that is there with other properties is streams.ErrIncompatible.
func Open(ctx context.Context, conns *streams.Conns, cfg Config) (*Outbox, error) {
	for _, d := range []struct {
		set *time.Duration
		to  time.Duration
	}{{&cfg.FirstPause, 5 * time.Second}, {&cfg.MaxPause, 15 * time.Minute}, {&cfg.FirstClosed, time.Second}, {&cfg.MaxClosed, time.Minute}} {
		if *d.set <= 0 {
			*d.set = d.to
		}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
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

// Put stores a mail under an id (printable ASCII, 1 to 128 characters). It is tried until expires, and then dropped. Put returns nil once the mail
// is stored; the errors are ErrFull, streams.ErrUnsure, when the broker did not answer for so long that it is not known whether the mail
// is stored, or another one, when it is not.
func (o *Outbox) Put(ctx context.Context, id string, expires time.Time, content []byte) error {
	if !isID(id) {
		return fmt.Errorf("outbox: %q is no id", id)
	}
	if len(content) > MaxContent {
		return fmt.Errorf("outbox: mail %s has %d bytes; %d are allowed", id, len(content), MaxContent)
	}
	ctx, span := o.cfg.Tracer.Start(ctx, "send mails", trace.SpanKindProducer)
	if span.On() {
		span.Set(semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("publish"),
			semconv.MessagingDestinationName(Stream), semconv.MessagingMessageID(id))
	}
	err := o.put(ctx, id, expires, content)
	span.End(err)
	return err
}

func (o *Outbox) put(ctx context.Context, id string, expires time.Time, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, putPatience)
	defer cancel()
	for {
		err := o.store(ctx, id, expires, content)
		var refused *streams.BrokerError
		switch {
		case err == nil:
			o.metrics.mails.queued.Inc()
			return nil
		case errors.As(err, &refused) && refused.Code == codeStoreFailed:
			return fmt.Errorf("outbox: mail %s: %w: %w", id, ErrFull, err)
		case !errors.Is(err, streams.ErrUnsure) && !errors.Is(err, streams.ErrNoStream):
			return fmt.Errorf("outbox: mail %s: %w", id, err)
		}
		select { // the broker is away, or its answer was lost; it tells a repeat by its id
		case <-ctx.Done():
			return fmt.Errorf("outbox: mail %s: %w", id, err)
		case <-time.After(putPause):
		}
	}
}

func (o *Outbox) store(ctx context.Context, id string, expires time.Time, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, putPatience/4)
	defer cancel()
	msg := &nats.Msg{
		Subject: subject, Data: content,
		Header: nats.Header{headerID: {id}, headerExpires: {expires.UTC().Format(time.RFC3339Nano)}},
	}
	telemetry.Inject(ctx, propagation.HeaderCarrier(msg.Header))
	_, err := streams.Store(ctx, o.nc, msg)
	return err
}

func isID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
