package outbox

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/streams/telemetry"
)

// errExpired is the error in the span of a mail that was not delivered in time.
var errExpired = errors.New("the mail was not delivered in time")

// handle tries a mail that the broker has handed out. deliveries is the context of the delivery.
func (r *runner) handle(deliveries context.Context, msg jetstream.Msg) {
	mail, err := parseMail(msg)
	if err != nil {
		r.cfg.Logger.Error("mail dropped: unreadable", "mail_id", mail.id, "error", err)
		r.metrics.mails.rejected.Inc()
		r.remove(msg, mail.sequence)
		return
	}
	switch r.inFlight.start(mail.sequence) {
	case delivering:
		r.release(msg, ackWait)
	case done:
		r.remove(msg, mail.sequence)
	case idle:
		r.deliverOnce(deliveries, msg, mail)
	}
}

// deliverOnce tries a mail once. Then it removes the mail or schedules the next try.
func (r *runner) deliverOnce(deliveries context.Context, msg jetstream.Msg, mail mail) {
	ctx, span := r.cfg.Tracer.Start(
		telemetry.Extract(deliveries, propagation.HeaderCarrier(msg.Headers())), "deliver mail",
		trace.SpanKindClient,
	)
	if span.On() {
		span.Set(
			semconv.MessagingMessageID(mail.id),
			attribute.Int64("hubcloud.mail_tries", int64(mail.tries)),
		)
	}
	logger := r.cfg.Logger.With("mail_id", mail.id, "tries", mail.tries)
	if !r.cfg.Now().Before(mail.expires) {
		logger.ErrorContext(ctx, "mail dropped: not delivered in time", "expires_at", mail.expires)
		r.metrics.mails.expired.Inc()
		span.End(errExpired)
		r.remove(msg, mail.sequence)
		return
	}
	began := time.Now()
	err := r.callDeliver(ctx, msg)
	took := time.Since(began)
	span.End(err)
	r.metrics.duration.Observe(took.Seconds())
	switch {
	case err == nil:
		r.server.reset()
		logger.InfoContext(ctx, "mail delivered", "duration_ms", took.Milliseconds())
		r.metrics.mails.delivered.Inc()
		r.remove(msg, mail.sequence)
	case deliveries.Err() != nil:
		logger.InfoContext(ctx, "mail left for the next start")
		r.retryAfter(msg, mail, 0)
	case errors.Is(err, ErrRejected):
		r.server.reset()
		logger.ErrorContext(ctx, "mail dropped: rejected", "error", err)
		r.metrics.mails.rejected.Inc()
		r.remove(msg, mail.sequence)
	case errors.Is(err, ErrObsolete):
		logger.InfoContext(ctx, "mail dropped: obsolete", "error", err)
		r.metrics.mails.obsolete.Inc()
		r.remove(msg, mail.sequence)
	case errors.Is(err, ErrUnreachable):
		wait, first := r.server.start()
		if first {
			logger.WarnContext(
				ctx, "mail server unreachable", "next_try_in", wait.Round(time.Millisecond),
				"error", err,
			)
		}
		r.metrics.serverFailures.Inc()
		r.retryAfter(msg, mail, wait)
	default:
		r.server.reset()
		failures := mail.tries - r.queueOf(msg).deferralsOf(mail.sequence)
		wait := backoff(failures, r.cfg.FirstPause, r.cfg.MaxPause)
		logger.WarnContext(
			ctx, "mail not delivered", "next_try_in", wait.Round(time.Millisecond), "error", err,
		)
		r.metrics.mailFailures.Inc()
		r.retryAfter(msg, mail, wait)
	}
}

// callDeliver calls deliver, and reports progress to the broker meanwhile.
func (r *runner) callDeliver(ctx context.Context, msg jetstream.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	delivered := make(chan error, 1)
	go func() { delivered <- r.deliver(ctx, msg.Data()) }()
	ticker := time.NewTicker(progressInterval)
	defer ticker.Stop()
	for {
		select {
		case err := <-delivered:
			return err
		case <-ticker.C:
			r.reportProgress(msg)
		}
	}
}

// remove removes a mail that is done and overwrites its bytes, which may contain a secret. If the
// broker does not confirm the removal, it may hand out the mail again: the state done then makes
// handle remove it again, not deliver it.
func (r *runner) remove(msg jetstream.Msg, sequence uint64) {
	ctx, cancel := context.WithTimeout(context.Background(), eraseTimeout)
	defer cancel()
	r.inFlight.set(sequence, done)
	if err := r.erase(ctx, sequence); err != nil {
		r.cfg.Logger.Warn("mail removal not confirmed", "sequence", sequence, "error", err)
		return
	}
	r.inFlight.set(sequence, idle)
	r.queueOf(msg).forget(sequence)
	if err := msg.Ack(); err != nil { // the consumer notices the removal by itself, a little later
		r.cfg.Logger.Warn("mail not acknowledged", "sequence", sequence, "error", err)
	}
}

// retryAfter schedules the next try of a mail: after the wait, but not after its expiry, which is
// logged by that try.
func (r *runner) retryAfter(msg jetstream.Msg, mail mail, wait time.Duration) {
	r.inFlight.set(mail.sequence, idle)
	r.release(msg, max(min(wait, mail.expires.Sub(r.cfg.Now())), 0))
}

// release returns a mail to the broker, which delivers it again after the wait. If that fails,
// the broker hands it out after ackWait.
func (r *runner) release(msg jetstream.Msg, wait time.Duration) {
	if err := msg.NakWithDelay(wait); err != nil {
		r.cfg.Logger.Warn("mail not given back to the broker", "next_try_in", ackWait, "error", err)
	}
}
