package outbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"hubcloud/streams"
	"hubcloud/streams/telemetry"
)

// Mail is what Put stores.
type Mail struct {
	// ID names the mail: printable ASCII, 1 to 128 characters. Two with one ID are one.
	ID string
	// Sender is whose mail it is: of each only Config.PerSender mails wait, and each has its turn
	// in delivery. Urgent mails have none.
	Sender string
	// Recipient is whom the mail goes to, in the form by which addresses are compared. A mail takes
	// the place of one of the same sender and recipient that still waits, and an urgent one of an
	// urgent one to the recipient.
	Recipient string
	// Urgent mails have a capacity and deliverers of their own.
	Urgent bool
	// Expires is until when the mail is tried.
	Expires time.Time
	Content []byte
}

// subject returns where the mail waits. Senders and recipients are hashed: they can be any text.
func (m Mail) subject() string {
	if m.Urgent {
		return urgentPrefix + token(m.Recipient)
	}
	return ordinaryPrefix + token(m.Sender) + "." + token(m.Recipient)
}

func token(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Put stores a mail. It is tried until it expires, and then dropped. Put returns nil once the mail
// is stored; the errors are ErrFull, ErrSenderFull, streams.ErrUnsure, when the broker did not
// answer for so long that it is not known whether the mail is stored, or another one, when it is
// not. A mail that this one replaces may be gone then: what it was about is settled by the caller
// before.
func (o *Outbox) Put(ctx context.Context, m Mail) error {
	if !isID(m.ID) {
		return fmt.Errorf("outbox: %q is no id", m.ID)
	}
	if len(m.Content) > MaxContent {
		return fmt.Errorf(
			"outbox: mail %s has %d bytes; %d are allowed", m.ID, len(m.Content), MaxContent,
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

// HasSpace returns nil if Put would take a mail of the sender to the recipient now, and ErrFull or
// ErrSenderFull if not.
func (o *Outbox) HasSpace(ctx context.Context, sender, recipient string) error {
	ctx, cancel := context.WithTimeout(ctx, putPatience/4)
	defer cancel()
	m := Mail{Sender: sender, Recipient: recipient}
	waits, err := o.waiting(ctx, m.subject())
	if err != nil {
		return err
	}
	return o.checkSpace(ctx, m, waits.sequence > 0)
}

func (o *Outbox) put(ctx context.Context, m Mail) error {
	ctx, cancel := context.WithTimeout(ctx, putPatience)
	defer cancel()
	for {
		err := o.replace(ctx, m)
		var refused *streams.BrokerError
		switch {
		case err == nil:
			o.metrics.mails.queued.Inc()
			return nil
		case errors.Is(err, ErrFull), errors.Is(err, ErrSenderFull):
			return fmt.Errorf("outbox: mail %s: %w", m.ID, err)
		case errors.As(err, &refused) && refused.Code == codeStoreFailed:
			return fmt.Errorf("outbox: mail %s: %w: %w", m.ID, ErrFull, err)
		// The broker is away, or another mail to the recipient came in between.
		case !errors.Is(err, streams.ErrNoStream) && !errors.Is(err, streams.ErrConflict) &&
			!errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrNoResponders):
			return fmt.Errorf("outbox: mail %s: %w", m.ID, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("outbox: mail %s: %w", m.ID, err)
		case <-time.After(putPause):
		}
	}
}

// replace stores a mail in the place of the one that waits for the same recipient, if any.
func (o *Outbox) replace(ctx context.Context, m Mail) error {
	waits, err := o.waiting(ctx, m.subject())
	if err != nil {
		return err
	}
	if waits.id == m.ID {
		return nil // an earlier try was stored
	}
	if err := o.checkSpace(ctx, m, waits.sequence > 0); err != nil {
		return err
	}
	if waits.sequence > 0 {
		// It is erased rather than pushed out: it may hold a secret.
		if err := o.erase(ctx, waits.sequence); err != nil {
			return err
		}
		o.metrics.mails.replaced.Inc()
	}
	msg := &nats.Msg{
		Subject: m.subject(), Data: m.Content,
		Header: nats.Header{
			headerID:       {m.ID},
			headerExpires:  {m.Expires.UTC().Format(time.RFC3339Nano)},
			headerExpected: {"0"},
		},
	}
	telemetry.Inject(ctx, propagation.HeaderCarrier(msg.Header))
	for {
		// The broker knows a repeat by its id, also when another mail to the recipient has taken
		// its place meanwhile: erasing that one for a mail that was stored would lose both.
		if _, err = streams.Store(ctx, o.nc, msg); !errors.Is(err, streams.ErrUnsure) ||
			ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(putPause):
		}
	}
}

// waits is a mail that waits. The zero value is none.
type waits struct {
	sequence uint64
	id       string
}

// waiting returns the mail under a subject, as the stream's leader has it.
func (o *Outbox) waiting(ctx context.Context, subject string) (waits, error) {
	question, err := json.Marshal(map[string]string{"last_by_subj": subject})
	if err != nil {
		return waits{}, err
	}
	var answer struct {
		Error   *streams.BrokerError `json:"error"`
		Message struct {
			Sequence uint64 `json:"seq"`
			Headers  []byte `json:"hdrs"`
		} `json:"message"`
	}
	if err := o.ask(ctx, "$JS.API.STREAM.MSG.GET."+Stream, question, &answer); err != nil {
		return waits{}, err
	}
	switch {
	case answer.Error != nil && answer.Error.Code == codeNoMessage:
		return waits{}, nil
	case answer.Error != nil:
		return waits{}, answer.Error
	}
	headers, err := nats.DecodeHeadersMsg(answer.Message.Headers)
	return waits{sequence: answer.Message.Sequence, id: headers.Get(headerID)}, err
}

// room returns an error if the mail is one too many. A mail that it replaces does not count. Mails
// that are stored at the same moment may exceed the bounds by their number: the urgent ones'
// capacity is for that too.
func (o *Outbox) checkSpace(ctx context.Context, m Mail, replaces bool) error {
	if m.Urgent {
		return o.roomFor(ctx, urgentPrefix+"*", UrgentCapacity, replaces, ErrFull)
	}
	if err := o.roomFor(ctx, ordinaryPrefix+token(m.Sender)+".*", o.cfg.PerSender, replaces, ErrSenderFull); err != nil {
		return err
	}
	return o.roomFor(ctx, ordinaryPrefix+"*.*", Capacity, replaces, ErrFull)
}

// roomFor returns full if as many mails wait under a filter as may. In a cluster a server that
// knows of no leader may answer, and know of fewer: then some more wait.
func (o *Outbox) roomFor(
	ctx context.Context, filter string, most int, replaces bool, full error,
) error {
	if replaces {
		most++
	}
	question, err := json.Marshal(struct {
		Filter string `json:"subjects_filter"`
		// Offset is behind all subjects: only their number is wanted.
		Offset int `json:"offset"`
	}{filter, 1 << 30})
	if err != nil {
		return err
	}
	var answer struct {
		Error *streams.BrokerError `json:"error"`
		Total int                  `json:"total"`
	}
	if err := o.ask(ctx, "$JS.API.STREAM.INFO."+Stream, question, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	if answer.Total >= most {
		return full
	}
	return nil
}

// erase removes a mail from the stream, and overwrites its bytes. One that is not there any more is
// removed. That it is not there is the word of the stream's leader alone. A leader that is deposed
// and cut off removes nothing, since its followers must agree; what it says of a mail that was
// removed before is stale by that: the mail counts as waiting, and is erased or delivered again
// later.
func (o *Outbox) erase(ctx context.Context, sequence uint64) error {
	question, err := json.Marshal(map[string]uint64{"seq": sequence})
	if err != nil {
		return err
	}
	var answer struct {
		Error   *streams.BrokerError `json:"error"`
		Success bool                 `json:"success"`
	}
	if err := o.ask(ctx, "$JS.API.STREAM.MSG.DELETE."+Stream, question, &answer); err != nil {
		return err
	}
	if answer.Success {
		return nil
	}
	var there struct {
		Error *streams.BrokerError `json:"error"`
	}
	if err := o.ask(ctx, "$JS.API.STREAM.MSG.GET."+Stream, question, &there); err != nil {
		return err
	}
	if there.Error != nil && there.Error.Code == codeNoMessage {
		return nil
	}
	return fmt.Errorf("mail %s is not removed: %w", strconv.FormatUint(sequence, 10), answer.Error)
}

func (o *Outbox) ask(ctx context.Context, subject string, question []byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, putPatience)
	defer cancel()
	text, err := streams.Ask(ctx, o.nc, subject, question)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("unreadable answer of the broker: %w", err)
	}
	return nil
}

func isID(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}
