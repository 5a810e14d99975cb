package jsapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// MaxBatch is the most messages that one atomic batch may hold: the broker's own limit.
const MaxBatch = 1000

// appendTimeout bounds the wait for the broker's answer if the context has no deadline.
const appendTimeout = 5 * time.Second

// ExpectLast adds a condition to a message: the broker stores it only if the last message under
// filter has the given sequence; 0 means that there is none. filter is the message's own subject,
// or one with wildcards that matches it. In a batch the first message carries the condition.
func ExpectLast(msg *nats.Msg, filter string, sequence uint64) {
	if msg.Header == nil {
		msg.Header = nats.Header{}
	}
	msg.Header[headerExpectedSubjectSequence] = []string{strconv.FormatUint(sequence, 10)}
	if filter != msg.Subject {
		msg.Header[headerExpectedSubject] = []string{filter}
	}
}

// ExpectEnd adds a condition to a message: the broker stores it only if the stream's last message
// has the given sequence, also one that has expired; 0 means that the stream never had a message.
func ExpectEnd(msg *nats.Msg, sequence uint64) {
	if msg.Header == nil {
		msg.Header = nats.Header{}
	}
	msg.Header[jetstream.ExpectedLastSeqHeader] = []string{strconv.FormatUint(sequence, 10)}
}

// ExpireAfter makes the broker remove a message that long after it is stored, rounded up to whole
// seconds. The stream must allow it (AllowMsgTTL).
func ExpireAfter(msg *nats.Msg, lifetime time.Duration) {
	if msg.Header == nil {
		msg.Header = nats.Header{}
	}
	seconds := max(1, (lifetime+time.Second-1)/time.Second)
	msg.Header[jetstream.MsgTTLHeader] = []string{strconv.FormatInt(int64(seconds), 10)}
}

// Append stores messages in the order given, all in one stream, and returns the sequence of the
// last one. One message is stored by itself, up to MaxBatch as one atomic batch: all of them or
// none. Append adds headers to the messages. Without a deadline of ctx the broker has 5 s to
// answer.
//
// Append sends once and never retries. Errors: ErrOutcomeUnknown, after which the messages may be
// stored; and ErrConflict, ErrNoStream, ErrNoLeader, a *jetstream.APIError, or one for too many or
// too big messages, after which nothing is stored. A broker that cannot store because its disk or
// the stream is full is a domain.Unavailable as well.
//
// It is used instead of nats.go's publish, which has no atomic batches and repeats by itself.
func Append(ctx context.Context, nc *nats.Conn, msgs ...*nats.Msg) (last uint64, err error) {
	if len(msgs) == 0 || len(msgs) > MaxBatch {
		return 0, fmt.Errorf("append %d messages: 1 to %d are allowed", len(msgs), MaxBatch)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, appendTimeout)
		defer cancel()
	}
	if len(msgs) > 1 {
		if err := sendBatch(nc, msgs); err != nil {
			return 0, err
		}
	}
	answer, err := nc.RequestMsgWithContext(ctx, msgs[len(msgs)-1])
	if err != nil {
		return 0, sendError(err)
	}
	return readAck(answer.Data)
}

// readAck reads the broker's answer to an append.
func readAck(text []byte) (last uint64, err error) {
	if last, ok := plainAck(text); ok {
		return last, nil
	}
	var ack struct {
		response
		Sequence uint64 `json:"seq"`
	}
	if err := json.Unmarshal(text, &ack); err != nil {
		return 0, fmt.Errorf("%w: unreadable answer: %w", ErrOutcomeUnknown, err)
	}
	if err := ack.failure(); err != nil {
		return 0, err
	}
	if ack.Sequence == 0 {
		return 0, fmt.Errorf("%w: an answer without a sequence", ErrOutcomeUnknown)
	}
	return ack.Sequence, nil
}

// plainAck reads an answer to a message that was stored, as the broker writes almost all of them:
// {"stream":"JOURNAL_0","seq":17}.
func plainAck(text []byte) (last uint64, ok bool) {
	if !bytes.HasPrefix(text, []byte(`{"stream":"`)) {
		return 0, false // such as an error
	}
	_, number, _ := bytes.Cut(text, []byte(`","seq":`))
	number, ok = bytes.CutSuffix(number, []byte(`}`))
	if !ok {
		return 0, false
	}
	last, err := strconv.ParseUint(string(number), 10, 64)
	return last, err == nil && last > 0
}

// sendBatch numbers the messages of a batch and sends all but the last. The broker stores nothing
// before it has the last.
func sendBatch(nc *nats.Conn, msgs []*nats.Msg) error {
	id := rand.Text()
	for i, msg := range msgs {
		if msg.Header == nil {
			msg.Header = nats.Header{}
		}
		msg.Header[HeaderBatchID] = []string{id}
		msg.Header[HeaderBatchSequence] = []string{strconv.Itoa(i + 1)}
		if i == len(msgs)-1 {
			msg.Header[HeaderBatchCommit] = []string{"1"}
			break
		}
		if err := nc.PublishMsg(msg); err != nil {
			return fmt.Errorf("append message %d of %d: %w", i+1, len(msgs), err)
		}
	}
	return nil
}

// sendError classifies the error of a request: whether the message can have reached the broker.
func sendError(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: %w", ErrNoStream, err)
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject),
		errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("append: %w", err)
	default:
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
	}
}
