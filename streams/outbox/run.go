package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"

	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

const (
	// deliverers is how many mails of a lane are delivered side by side: one server that answers
	// slowly holds up few others.
	deliverers = 4
	// deliveryTimeout bounds one try.
	deliveryTimeout = 90 * time.Second
	// ackWait is how long the broker hears nothing of a mail before it hands it out again;
	// progressEvery is how often it hears that a delivery is under way. So a mail that a killed
	// process had in hand waits for no longer than ackWait. It is also how long a broker that was
	// restarted leaves all mails that wait for their next try alone.
	ackWait       = 10 * time.Second
	progressEvery = 3 * time.Second
	// nextWait is how long one question for the next mail waits. nextPause is the pause after one
	// that failed.
	nextWait  = 30 * time.Second
	nextPause = time.Second
	// beginPause is the pause before the queue is opened once more that could not be.
	beginPause = 5 * time.Second
	// nextHeartbeat is how often the broker says that it still has the question. A broker that is
	// back after it was away has not.
	nextHeartbeat = 2 * time.Second
	// eraseTimeout bounds the wait for the broker's word that a mail is gone.
	eraseTimeout = 5 * time.Second
	// countEvery is how often the waiting mails are counted.
	countEvery = 15 * time.Second
)

// errExpired says that a mail's time was over before it could be delivered.
var errExpired = errors.New("the mail could not be delivered in time")

// lane is one of the two ways out: ordinary mails, and urgent ones, which never wait behind the
// ordinary.
type lane struct {
	consumer string
	filters  []string
}

var (
	ordinaryLane = lane{ordinaryName, []string{formerSubject, ordinaryPrefix + "*.*"}}
	urgentLane   = lane{urgentName, []string{urgentPrefix + "*"}}
)

// config declares a lane's consumer, which all replicas share. What a failed mail waits for counts
// as handed out, so that number is not bounded: mails that wait must not keep others from their
// turn.
func (l lane) config() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:        l.consumer,
		FilterSubjects: l.filters,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        ackWait,
		MaxDeliver:     -1,
		MaxAckPending:  -1,
	}
}

// Run delivers mails until ctx ends, and returns ctx's error then; any other error says that it
// could not begin. deliver gets the content that Put was given. It returns nil once the mail is
// delivered; an error that is ErrRejected or ErrObsolete ends the mail, one that is ErrUnreachable
// holds all of them back for a while, and after any other the mail is tried again. It is called by
// several goroutines at once, and its context ends after 90 s, or Grace after ctx.
func (o *Outbox) Run(
	ctx context.Context, deliver func(ctx context.Context, content []byte) error,
) error {
	consumers, err := o.begin(ctx)
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	// Deliveries outlive ctx by Grace.
	patient, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(Grace, cut) })()

	r := &running{
		Outbox: o, consumers: consumers, deliver: deliver, patient: patient,
		gate: gate{
			first:   o.cfg.FirstClosed,
			longest: o.cfg.MaxClosed,
		}, hands: hands{mails: map[uint64]state{}}, queue: newQueue(),
	}
	var group errgroup.Group
	for range deliverers {
		group.Go(func() error {
			return r.pull(
				ctx, urgentLane, func(msg jetstream.Msg) error { r.handle(msg); return nil },
			)
		})
		group.Go(func() error { return r.work(ctx) })
	}
	group.Go(func() error {
		return r.pull(ctx, ordinaryLane, func(msg jetstream.Msg) error { return r.hold(ctx, msg) })
	})
	group.Go(func() error { return r.keep(ctx) })
	group.Go(func() error { return r.count(ctx) })
	return group.Wait()
}

// begin makes the consumers of both lanes, however long the broker takes to have leaders for them.
func (o *Outbox) begin(ctx context.Context) (map[string]jetstream.Consumer, error) {
	consumers := map[string]jetstream.Consumer{}
	for {
		err := streams.SetUp(ctx, func(ctx context.Context) (err error) {
			// The consumer of a former version took all mails, and gives the urgent ones away
			// first.
			for _, lane := range []lane{ordinaryLane, urgentLane} {
				if consumers[lane.consumer], err = o.js.CreateOrUpdateConsumer(ctx, Stream, lane.config()); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil || ctx.Err() != nil || errors.Is(err, nats.ErrConnectionClosed) {
			return consumers, err
		}
		o.cfg.Log.Warn("outbox not opened", "error", err)
		select {
		case <-time.After(beginPause):
		case <-ctx.Done():
		}
	}
}

// running is one Run.
type running struct {
	*Outbox
	consumers map[string]jetstream.Consumer
	deliver   func(ctx context.Context, content []byte) error
	patient   context.Context
	gate      gate
	hands     hands
	queue     *queue
}

// pull asks for one mail of a lane after the other, and hands it on.
func (r *running) pull(ctx context.Context, lane lane, to func(jetstream.Msg) error) error {
	for {
		if err := r.gate.pass(ctx); err != nil {
			return err
		}
		msg, err := r.next(ctx, lane)
		switch {
		case ctx.Err() != nil:
			if msg != nil {
				r.release(msg, 0)
			}
			return ctx.Err()
		case errors.Is(err, nats.ErrConnectionClosed):
			return fmt.Errorf("outbox: %w", err)
		case err != nil:
			r.cfg.Log.Warn("the outbox cannot be read", "error", err)
			if err := r.regain(ctx, lane); err != nil {
				return err
			}
		case msg != nil:
			if err := to(msg); err != nil {
				return err
			}
		}
	}
}

// next gives the next mail, nil when there is none yet.
func (r *running) next(ctx context.Context, lane lane) (jetstream.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, nextWait)
	defer cancel()
	msg, err := r.consumers[lane.consumer].Next(
		jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(nextHeartbeat),
	)
	if errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	return msg, err
}

// regain waits a moment, and sees to it that the consumer is there. A broker that is away is waited
// for.
func (r *running) regain(ctx context.Context, lane lane) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(nextPause):
	}
	if _, err := r.js.CreateOrUpdateConsumer(ctx, Stream, lane.config()); err != nil &&
		ctx.Err() == nil {
		r.cfg.Log.Warn("the outbox's consumer cannot be made", "error", err)
	}
	return ctx.Err()
}

// handle brings one mail a step further.
func (r *running) handle(msg jetstream.Msg) {
	mail, err := read(msg)
	if err != nil {
		r.cfg.Log.Error("a mail is dropped: it cannot be read", "mail_id", mail.id, "error", err)
		r.metrics.mails.refused.Inc()
		r.finish(msg, mail.sequence)
		return
	}
	switch r.hands.take(mail.sequence) {
	case inHand:
		r.release(msg, ackWait)
	case done:
		r.finish(msg, mail.sequence)
	case untouched:
		r.deliverOnce(msg, mail)
	}
}

// deliverOnce makes one try, and does with the mail what follows from it.
func (r *running) deliverOnce(msg jetstream.Msg, mail mail) {
	ctx, span := r.cfg.Tracer.Start(
		telemetry.Extract(r.patient, propagation.HeaderCarrier(msg.Headers())), "deliver mail",
		trace.SpanKindClient,
	)
	if span.On() {
		span.Set(
			semconv.MessagingMessageID(mail.id),
			attribute.Int64("hubcloud.mail_tries", int64(mail.tries)),
		)
	}
	log := r.cfg.Log.With("mail_id", mail.id, "tries", mail.tries)
	if !r.cfg.Now().Before(mail.expires) {
		log.ErrorContext(
			ctx, "a mail is dropped: it could not be delivered in time", "expires_at", mail.expires,
		)
		r.metrics.mails.expired.Inc()
		span.End(errExpired)
		r.finish(msg, mail.sequence)
		return
	}
	began := time.Now()
	err := r.try(ctx, msg)
	took := time.Since(began)
	span.End(err)
	r.metrics.duration.Observe(took.Seconds())
	switch {
	case err == nil:
		r.gate.free()
		log.InfoContext(ctx, "mail delivered", "duration_ms", took.Milliseconds())
		r.metrics.mails.delivered.Inc()
		r.finish(msg, mail.sequence)
	case r.patient.Err() != nil:
		log.InfoContext(ctx, "a mail is left for the next start")
		r.putBack(msg, mail, 0)
	case errors.Is(err, ErrRejected):
		r.gate.free()
		log.ErrorContext(ctx, "a mail is dropped: it is refused", "error", err)
		r.metrics.mails.refused.Inc()
		r.finish(msg, mail.sequence)
	case errors.Is(err, ErrObsolete):
		log.InfoContext(ctx, "a mail is dropped: nobody wants it any more", "error", err)
		r.metrics.mails.obsolete.Inc()
		r.finish(msg, mail.sequence)
	case errors.Is(err, ErrUnreachable):
		wait, first := r.gate.close()
		if first {
			log.WarnContext(
				ctx, "no mail can be delivered", "next_try_in", wait.Round(time.Millisecond),
				"error", err,
			)
		}
		r.metrics.closed.Inc()
		r.putBack(msg, mail, wait)
	default:
		r.gate.free()
		wait := pause(mail.tries-r.queue.heldBack(mail.sequence), r.cfg.FirstPause, r.cfg.MaxPause)
		log.WarnContext(
			ctx, "a mail could not be delivered", "next_try_in", wait.Round(time.Millisecond),
			"error", err,
		)
		r.metrics.later.Inc()
		r.putBack(msg, mail, wait)
	}
}

// try makes one try at a delivery, and tells the broker meanwhile that it is under way.
func (r *running) try(ctx context.Context, msg jetstream.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	delivered := make(chan error, 1)
	go func() { delivered <- r.deliver(ctx, msg.Data()) }()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-delivered:
			return err
		case <-ticker.C:
			r.progress(msg)
		}
	}
}

// finish takes a mail out of the queue: its bytes are overwritten where they lie, since they may be
// a secret. Without the broker's word for it the mail may be handed out again, and is remembered.
func (r *running) finish(msg jetstream.Msg, sequence uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), eraseTimeout)
	defer cancel()
	r.hands.set(sequence, done)
	if err := r.erase(ctx, sequence); err != nil {
		r.cfg.Log.Warn(
			"the broker has not confirmed that a mail is done", "sequence", sequence, "error", err,
		)
		return
	}
	r.hands.set(sequence, untouched)
	r.queue.forget(sequence)
	if err := msg.Ack(); err != nil { // the consumer finds out by itself, a little later
		r.cfg.Log.Warn(
			"the broker cannot be told that a mail is done", "sequence", sequence, "error", err,
		)
	}
}

// putBack leaves a mail for a later try, at the latest when its time is over, so that its end is
// told.
func (r *running) putBack(msg jetstream.Msg, mail mail, wait time.Duration) {
	r.hands.set(mail.sequence, untouched)
	r.release(msg, max(min(wait, mail.expires.Sub(r.cfg.Now())), 0))
}

// release gives a mail back to the broker. One that does not hear of it hands the mail out again by
// itself.
func (r *running) release(msg jetstream.Msg, wait time.Duration) {
	if err := msg.NakWithDelay(wait); err != nil {
		r.cfg.Log.Warn(
			"a mail could not be put back; it comes back by itself", "within", ackWait,
			"error", err,
		)
	}
}

// count keeps the gauge of waiting mails. A server that knows of no leader may answer, from what it
// has: the gauge then shows an earlier number until the next count, and nothing is decided by it.
func (r *running) count(ctx context.Context) error {
	ticker := time.NewTicker(countEvery)
	defer ticker.Stop()
	for {
		if stream, err := r.js.Stream(ctx, Stream); err == nil {
			r.metrics.waiting.Set(float64(stream.CachedInfo().State.Msgs))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
