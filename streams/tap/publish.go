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
)

const (
	// publishersAtOnce is how many hubs are published side by side. Of one hub each record waits
	// for the one before to be stored: only so is their order certain whatever fails.
	publishersAtOnce = 64
	// publishTimeout bounds one try.
	publishTimeout = 5 * time.Second
	// publishPause is the pause before the second try, which doubles up to maxPublishPause.
	publishPause    = 50 * time.Millisecond
	maxPublishPause = 5 * time.Second
	// publishComplaint is after how many failures in a row the log hears of it.
	publishComplaint = 5
	// firstTries is how often a subject is tried that no stream has ever taken anything on.
	firstTries = 3
)

// Publisher publishes records into a JetStream stream, each as one message with a Nats-Msg-Id of
// its identity: a stream leaves out what is repeated within its duplicate window.
type Publisher struct {
	js      jetstream.JetStream
	subject Subject
	format  Format
	log     *slog.Logger
	// taken says that a stream has taken something: the subject is right, and whatever fails is
	// worth waiting for.
	taken atomic.Bool
}

// NewPublisher makes a Publisher. A nil log is the default logger.
func NewPublisher(
	js jetstream.JetStream, subject Subject, format Format, log *slog.Logger,
) *Publisher {
	if log == nil {
		log = slog.Default()
	}
	return &Publisher{js: js, subject: subject, format: format, log: log}
}

// ErrNoStream says that no stream takes the subject.
var ErrNoStream = errors.New("no stream takes this subject")

// Check says whether a stream takes what would be published, before anything is. It asks with an
// account's usual rights; where those are missing, ErrNoStream comes with the first record.
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

// Writers is how many calls of Write are worthwhile at once.
func (p *Publisher) Writers() int { return publishersAtOnce }

// Flush does nothing: what Write has published is stored.
func (p *Publisher) Flush(context.Context) error { return nil }

// Write publishes the records one after the other, each until it is stored or ctx ends. ErrNoStream
// when no stream takes one.
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
		within, cancel := context.WithTimeout(ctx, publishTimeout)
		_, err := p.js.PublishMsg(within, msg)
		cancel()
		switch {
		case err == nil:
			p.taken.Store(true)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, jetstream.ErrNoStreamResponse) && try >= firstTries && !p.taken.Load():
			return fmt.Errorf("%w: %s", ErrNoStream, msg.Subject)
		case permanent(err):
			return fmt.Errorf("publish to %s: %w", msg.Subject, err)
		case try%publishComplaint == 0:
			p.log.Warn(
				"a record cannot be published; trying again", "subject", msg.Subject, "error", err,
			)
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxPublishPause)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// permanent says that trying again will not help.
func permanent(err error) bool {
	return errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrConnectionClosed) ||
		errors.Is(err, nats.ErrBadSubject)
}
