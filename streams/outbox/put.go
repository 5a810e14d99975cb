package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/streams"
	"hubcloud/streams/jsapi"
	"hubcloud/streams/telemetry"
)

// Mail is a mail that Put stores.
type Mail struct {
	// ID is the mail's id: printable ASCII, 1 to 128 characters. Two mails with one ID are one.
	ID string
	// Sender is the organization that the mail is from. Config.PerSender limits its waiting mails,
	// and its mails are delivered in turn with other senders' mails. Urgent mails have no sender.
	Sender string
	// Recipient is the normalized address that the mail goes to. The mail replaces a waiting mail
	// of the same sender to the same recipient; an urgent mail replaces an urgent one.
	Recipient string
	// Topic, if not empty, limits this to mails of the same topic.
	Topic string
	// Urgent mails have their own capacity and their own deliverers, and so have alarms. Each
	// sender has as many alarms as ordinary mails, besides. A mail is at most one of both.
	Urgent, Alarm bool
	// Expires is when an undelivered mail is dropped.
	Expires time.Time
	Content []byte
}

// subject returns the mail's subject. Sender, recipient and topic are hashed: they may be any text.
func (m Mail) subject() string {
	replaces := m.Recipient
	if m.Topic != "" {
		replaces += "\x00" + m.Topic
	}
	if m.Urgent {
		return urgentPrefix + token(replaces)
	}
	return m.senderPrefix() + token(m.Sender) + "." + token(replaces)
}

// senderPrefix returns the prefix of the subjects of the class of a mail that has a sender.
func (m Mail) senderPrefix() string {
	if m.Alarm {
		return alarmPrefix
	}
	return ordinaryPrefix
}

func token(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Put stores a mail and returns nil once it is stored. After ErrFull, ErrSenderFull and any other
// error the mail is not stored, but for jsapi.ErrOutcomeUnknown: then the broker has not answered
// in time, and the mail may be stored. The mail that this one replaces may be removed also when Put
// fails: it must be obsolete before the call.
func (o *Outbox) Put(ctx context.Context, m Mail) error {
	if !isID(m.ID) {
		return fmt.Errorf("outbox: id %q: must be 1 to 128 printable ASCII characters", m.ID)
	}
	if len(m.Content) > MaxContent {
		return fmt.Errorf(
			"outbox: mail %s: content of %d bytes: at most %d are allowed", m.ID, len(m.Content),
			MaxContent,
		)
	}
	ctx, span := o.cfg.Tracer.Start(ctx, "send mails", trace.SpanKindProducer)
	if span.On() {
		span.Set(
			semconv.MessagingSystemKey.String("nats"), semconv.MessagingOperationTypeSend,
			semconv.MessagingOperationName("publish"), semconv.MessagingDestinationName(Stream),
			semconv.MessagingMessageID(m.ID),
		)
	}
	err := o.put(ctx, m)
	span.End(err)
	return err
}

// HasSpace returns nil if Put would store an ordinary mail of the sender to the recipient now, and
// ErrFull or ErrSenderFull if it would not.
func (o *Outbox) HasSpace(ctx context.Context, sender, recipient string) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout/4)
	defer cancel()
	m := Mail{Sender: sender, Recipient: recipient}
	former, err := o.waiting(ctx, m.subject())
	if err != nil {
		return err
	}
	return o.checkSpace(ctx, m, former.sequence > 0)
}

func (o *Outbox) put(ctx context.Context, m Mail) error {
	ctx, cancel := context.WithTimeout(ctx, putTimeout)
	defer cancel()
	for {
		err := o.replace(ctx, m)
		switch {
		case err == nil:
			o.metrics.mails.queued.Inc()
			return nil
		case errors.Is(err, ErrFull), errors.Is(err, ErrSenderFull):
			return fmt.Errorf("outbox: mail %s: %w", m.ID, err)
		case jsapi.IsStreamFull(err):
			return fmt.Errorf("outbox: mail %s: %w: %w", m.ID, ErrFull, err)
		// Otherwise the broker is away, or another mail to the recipient came in between: try
		// again.
		case !errors.Is(err, jsapi.ErrNoStream) && !errors.Is(err, jsapi.ErrNoLeader) &&
			!errors.Is(err, jsapi.ErrConflict) &&
			!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("outbox: mail %s: %w", m.ID, err)
		}
		if !streams.Sleep(ctx, putPause) {
			return fmt.Errorf("outbox: mail %s: %w", m.ID, err)
		}
	}
}

// replace stores a mail and removes the waiting mail that it replaces, if any.
func (o *Outbox) replace(ctx context.Context, m Mail) error {
	former, err := o.waiting(ctx, m.subject())
	if err != nil {
		return err
	}
	if former.id == m.ID {
		return nil // an earlier try was stored
	}
	if err := o.checkSpace(ctx, m, former.sequence > 0); err != nil {
		return err
	}
	if former.sequence > 0 {
		// Erased, which overwrites its bytes: it may contain a secret.
		if err := o.erase(ctx, former.sequence); err != nil {
			return err
		}
		o.metrics.mails.replaced.Inc()
	}
	msg := &nats.Msg{
		Subject: m.subject(), Data: m.Content,
		Header: nats.Header{
			headerID:      {m.ID},
			headerExpires: {m.Expires.UTC().Format(time.RFC3339Nano)},
		},
	}
	jsapi.ExpectLast(msg, msg.Subject, 0)
	telemetry.Inject(ctx, propagation.HeaderCarrier(msg.Header))
	for {
		// The same message is sent again: the broker recognizes its id, also when another mail has
		// replaced it meanwhile. To start over would erase that mail, and lose both.
		if _, err = jsapi.Append(ctx, o.nc, msg); !errors.Is(err, jsapi.ErrOutcomeUnknown) ||
			ctx.Err() != nil {
			return err
		}
		if !streams.Sleep(ctx, putPause) {
			return err
		}
	}
}

// waitingMail is a mail in the queue. The zero value is none.
type waitingMail struct {
	sequence uint64
	id       string
}

// waiting asks the stream's leader for the mail with a subject.
func (o *Outbox) waiting(ctx context.Context, subject string) (waitingMail, error) {
	msg, err := o.api().GetLast(ctx, Stream, subject)
	if errors.Is(err, jsapi.ErrNotFound) {
		return waitingMail{}, nil
	}
	if err != nil {
		return waitingMail{}, err
	}
	return waitingMail{sequence: msg.Sequence, id: msg.Header.Get(headerID)}, nil
}

// api returns JetStream's API with the patience of Put.
func (o *Outbox) api() jsapi.API {
	return jsapi.New(o.nc).WithRetry(jsapi.Retry{Total: putTimeout})
}

// checkSpace returns ErrFull or ErrSenderFull for a mail too many. The mail that it replaces does
// not count. Mails that are stored at the same moment may exceed the limits by their number; the
// stream has space for them in the capacity of urgent mails.
func (o *Outbox) checkSpace(ctx context.Context, m Mail, replaces bool) error {
	if m.Urgent {
		return o.checkCount(ctx, urgentPrefix+"*", UrgentCapacity, replaces, ErrFull)
	}
	prefix, capacity := m.senderPrefix(), Capacity
	if m.Alarm {
		capacity = AlarmCapacity
	}
	subject := prefix + token(m.Sender) + ".*"
	if err := o.checkCount(ctx, subject, o.cfg.PerSender, replaces, ErrSenderFull); err != nil {
		return err
	}
	return o.checkCount(ctx, prefix+"*.*", capacity, replaces, ErrFull)
}

// checkCount returns full if the filter matches as many mails as it may. In a cluster a server that
// knows no leader may answer and count fewer: then some more mails are stored.
func (o *Outbox) checkCount(
	ctx context.Context, filter string, limit int, replaces bool, full error,
) error {
	if replaces {
		limit++
	}
	waiting, err := o.api().CountSubjects(ctx, Stream, filter)
	if err != nil {
		return err
	}
	if waiting >= limit {
		return full
	}
	return nil
}

// erase removes a mail from the stream and overwrites its bytes. It returns nil also if the
// stream's leader does not have the mail any more. A deposed leader cannot remove a mail, and may
// still list one that was removed: that mail counts as waiting until it is erased or delivered
// again.
func (o *Outbox) erase(ctx context.Context, sequence uint64) error {
	return o.api().Erase(ctx, Stream, sequence)
}

func isID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
