package tap

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/streams"
)

const (
	// publishersAtOnce is the number of hubs that are published concurrently. Each record of a hub
	// waits until the one before is stored, which keeps their order through failures.
	publishersAtOnce = 64
	// publishTimeout limits one attempt.
	publishTimeout = 5 * time.Second
	// publishPause is the pause before the second attempt. It doubles up to maxPublishPause.
	publishPause    = 50 * time.Millisecond
	maxPublishPause = 5 * time.Second
	// publishWarnEvery is the number of failures in a row between two log lines.
	publishWarnEvery = 5
	// firstTries is the number of attempts on a subject that no stream has accepted so far.
	firstTries = 3
)

// Publisher is an Output that publishes records to a JetStream stream. The Nats-Msg-Id of a message
// is the identity of its record, so the stream discards records repeated within its duplicate
// window.
type Publisher struct {
	js      jetstream.JetStream
	subject Subject
	format  Format
	logger  *slog.Logger
	// accepted reports that a stream has accepted a record: the subject is right, so later failures
	// are retried without limit.
	accepted atomic.Bool
}

// NewPublisher returns a Publisher. logger defaults to slog.Default().
func NewPublisher(
	js jetstream.JetStream, subject Subject, format Format, logger *slog.Logger,
) *Publisher {
	if logger == nil {
		logger = slog.Default()
	}
	return &Publisher{js: js, subject: subject, format: format, logger: logger}
}

// ErrNoStream reports that no stream has the subject.
var ErrNoStream = errors.New("no stream has the subject")

// Check returns ErrNoStream if no stream has the subject. If the account may not look up streams,
// Check returns nil and the first Write returns ErrNoStream instead.
func (p *Publisher) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	subject := p.subject.of(Record{Hub: "hub-aaaa-aaaa-aaaa", Type: "channel.observed"})
	_, err := p.js.StreamNameBySubject(ctx, subject)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w: %s", ErrNoStream, subject)
	}
	return nil
}

// Writers returns the number of concurrent calls of Write that make sense.
func (p *Publisher) Writers() int { return publishersAtOnce }

// Flush does nothing: Write returns once the records are stored.
func (p *Publisher) Flush(context.Context) error { return nil }

// Write publishes the records one after the other and retries each until it is stored or ctx ends.
// It returns ErrNoStream if no stream has the subject.
func (p *Publisher) Write(ctx context.Context, records []Record) error {
	for _, r := range records {
		if err := p.publish(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func (p *Publisher) publish(ctx context.Context, r Record) error {
	body, err := p.format.Append(nil, r)
	if err != nil {
		return err
	}
	msg := &nats.Msg{Subject: p.subject.of(r), Data: body, Header: nats.Header{
		nats.MsgIdHdr: {string(r.Hub) + "/" + r.ID}, "Content-Type": {p.format.ContentType()},
	}}
	pause := publishPause
	for try := 1; ; try++ {
		publishCtx, cancel := context.WithTimeout(ctx, publishTimeout)
		_, err := p.js.PublishMsg(publishCtx, msg)
		cancel()
		switch {
		case err == nil:
			p.accepted.Store(true)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, jetstream.ErrNoStreamResponse) && try >= firstTries &&
			!p.accepted.Load():
			return fmt.Errorf("%w: %s", ErrNoStream, msg.Subject)
		case permanent(err):
			return fmt.Errorf("publish to %s: %w", msg.Subject, err)
		case try%publishWarnEvery == 0:
			p.logger.Warn("publishing failed; retrying", "subject", msg.Subject, "error", err)
		}
		if !streams.Sleep(ctx, pause) {
			return ctx.Err()
		}
		pause = min(2*pause, maxPublishPause)
	}
}

// permanent reports whether retrying cannot help.
func permanent(err error) bool {
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrBadSubject)
}
