package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

var (
	// ErrFull says that the queue holds as many mails as it may; the mail is not stored.
	ErrFull = errors.New("the outbox is full")
	// ErrSenderFull says that as many mails of the sender wait as may; the mail is not stored.
	ErrSenderFull = errors.New("too many mails of one sender wait in the outbox")
	// ErrRejected, from a delivery, says that this mail is never to be tried again.
	ErrRejected = errors.New("the mail is refused for good")
	// ErrObsolete, from a delivery, says that nobody wants this mail any more.
	ErrObsolete = errors.New("the mail is not wanted any more")
	// ErrUnreachable, from a delivery, says that no mail can be delivered at the moment.
	ErrUnreachable = errors.New("no mail can be delivered")
)

// Limits of the queue.
const (
	// Capacity is how many ordinary mails may wait, and UrgentCapacity how many urgent ones beside
	// them. What a service writes in a week while its mail server is away is far below.
	Capacity       = 10_000
	UrgentCapacity = 10_000
	// DefaultPerSender is how many mails of one sender may wait.
	DefaultPerSender = 200
	// MaxContent is the most bytes that a mail may have.
	MaxContent = 64 << 10
	// Grace is how long deliveries under way may go on after the end of Run's context.
	Grace = 2 * time.Second
)

// Stream is the stream that the queue is kept in, in the account CLOUD: operators look at how long
// it is.
const Stream = "MAIL"

const (
	// formerSubject is the subject of all mails from before mails had senders and recipients.
	formerSubject = "mail.waiting"
	// Mails wait under <urgentPrefix><recipient> and <ordinaryPrefix><sender>.<recipient>, the
	// latter as hashes.
	urgentPrefix   = "mail.urgent."
	ordinaryPrefix = "mail.ordinary."
	ordinaryName   = "delivery"
	urgentName     = "urgent"
	// duplicateWindow is how long the broker knows an id again. putPatience, in which Put tries, is
	// well below.
	duplicateWindow = 2 * time.Minute
	putPatience     = 10 * time.Second
	putPause        = 50 * time.Millisecond
	// maxHeader leaves room for the headers.
	maxHeader = 4 << 10

	headerID       = "Nats-Msg-Id" // the broker's own name: it finds duplicates by it
	headerExpected = "Nats-Expected-Last-Subject-Sequence"
	headerExpires  = "Hubcloud-Expires"
	// codeStoreFailed is the broker's error for a stream that has reached a limit and keeps what it
	// has.
	codeStoreFailed = 10077
	// codeNoMessage is the broker's error for a subject or a sequence without a message.
	codeNoMessage = 10037
)

// declaration declares the stream. A mail is removed once it is done; a full queue refuses what is
// new; no age is set, since each mail has its own, and what ends one is to be told.
func declaration(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        Stream,
		Description: "mails that wait for delivery",
		Subjects:    []string{formerSubject, urgentPrefix + "*", ordinaryPrefix + "*.*"},
		Retention:   jetstream.WorkQueuePolicy,
		Storage:     jetstream.FileStorage,
		Replicas:    replicas,
		Discard:     jetstream.DiscardNew,
		MaxMsgs:     Capacity + UrgentCapacity,
		MaxMsgSize:  MaxContent + maxHeader,
		Duplicates:  duplicateWindow,
		AllowDirect: true,
	}
}

// Config is what an Outbox needs.
type Config struct {
	// Replicas of the stream on the broker (1, 3 or 5); 0 leaves them as they are, and makes one.
	Replicas int
	// PerSender is how many mails of one sender may wait; 0 stands for DefaultPerSender.
	PerSender int
	// FirstPause is how long a mail waits after its first failure; each further one doubles it, up
	// to MaxPause. 0 stands for 5 s and 15 min.
	FirstPause, MaxPause time.Duration
	// FirstClosed and MaxClosed are the same for all mails together, after ErrUnreachable. 0 stands
	// for 1 s and 1 min.
	FirstClosed, MaxClosed time.Duration
	// Now is the clock by which mails expire; nil stands for time.Now.
	Now func() time.Time
	// Log gets what fails; nil discards it.
	Log *slog.Logger
	// Metrics is where the package's metrics are registered; nil: nowhere.
	Metrics prometheus.Registerer
	// Tracer begins a span for each mail that is put into the queue, and for each try to deliver
	// one, which goes on with the trace of the former; the zero value none.
	Tracer telemetry.Tracer
}

// Outbox is the queue. Safe for concurrent use.
type Outbox struct {
	cfg     Config
	nc      *nats.Conn
	js      jetstream.JetStream
	metrics *metrics
}

// Open opens the queue, and makes it if it is absent. One that is there with other properties is
// streams.ErrIncompatible.
func Open(ctx context.Context, conns *streams.Conns, cfg Config) (*Outbox, error) {
	for _, d := range []struct {
		set *time.Duration
		to  time.Duration
	}{
		{&cfg.FirstPause, 5 * time.Second}, {&cfg.MaxPause, 15 * time.Minute},
		{&cfg.FirstClosed, time.Second}, {&cfg.MaxClosed, time.Minute},
	} {
		if *d.set <= 0 {
			*d.set = d.to
		}
	}
	if cfg.PerSender <= 0 {
		cfg.PerSender = DefaultPerSender
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
	if err := streams.SetUp(ctx, func(ctx context.Context) error { return upgrade(ctx, js) }); err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	if _, err := streams.Declare(ctx, js, declaration(cfg.Replicas)); err != nil {
		return nil, fmt.Errorf("open the outbox: %w", err)
	}
	return &Outbox{cfg: cfg, nc: conns.Cloud, js: js, metrics: newMetrics(cfg.Metrics)}, nil
}

// upgrade gives a stream from before mails had senders and recipients the subjects and the capacity
// of now.
func upgrade(ctx context.Context, js jetstream.JetStream) error {
	stream, err := js.Stream(ctx, Stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	config := stream.CachedInfo().Config
	if !slices.Equal(config.Subjects, []string{formerSubject}) {
		return nil
	}
	want := declaration(config.Replicas)
	config.Subjects, config.MaxMsgs = want.Subjects, want.MaxMsgs
	_, err = js.UpdateStream(ctx, config)
	return err
}
