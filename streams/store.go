package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"hubcloud/domain"
)

// What Store can answer beside success.
var (
	// ErrConflict says that nothing was stored because the log has moved on: the expected sequence
	// is not the last one.
	ErrConflict = errors.New("conflict: the log has moved on")
	// ErrNoStream says that nothing was stored because no stream takes the subject (yet, or while
	// the broker starts).
	ErrNoStream = errors.New("no stream takes the message")
	// ErrUnsure says that the answer was lost: the messages may be stored, may be stored later, or
	// may not.
	ErrUnsure = errors.New("unsure whether the message was stored")
)

// MaxBatch is the most messages that one atomic batch may hold: the broker's own limit.
const MaxBatch = 1000

// storeTimeout bounds the wait for the broker's answer when the context has no deadline.
const storeTimeout = 5 * time.Second

// Headers of the broker.
const (
	headerExpectedSubjectSequence = "Nats-Expected-Last-Subject-Sequence"
	headerExpectedSubject         = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerBatchID                 = "Nats-Batch-Id"
	headerBatchSequence           = "Nats-Batch-Sequence"
	headerBatchCommit             = "Nats-Batch-Commit"
)

// Error codes of the broker: its text is not looked at.
const (
	codeWrongLastSequence         = 10071
	codeWrongLastSequenceConstant = 10164 // replicated streams, and in batches
	codeStreamNotFound            = 10059
	// The broker's disk is full or broken, or a limit of what it stores is reached.
	codeInsufficientResources = 10023
	codeStorageExceeded       = 10047
	codeStoreFailed           = 10077
)

// A BrokerError is a refusal of the broker that has no error of its own here. Nothing was stored.
type BrokerError struct {
	Code        int    `json:"err_code"`
	Status      int    `json:"code"`
	Description string `json:"description"`
}

// Error gives the broker's words.
func (e *BrokerError) Error() string {
	return fmt.Sprintf("the broker refuses: %s (%d, status %d)", e.Description, e.Code, e.Status)
}

// full reports whether the broker has no room to store anything. That passes once somebody makes
// room.
func (e *BrokerError) full() bool {
	return e.Code == codeInsufficientResources || e.Code == codeStorageExceeded ||
		e.Code == codeStoreFailed
}

// Expect makes a message be stored only if the last sequence stored under filter is that one; 0
// means that there is none. filter is the message's own subject, or one with wildcards that matches
// it. In a batch it is said on the first message.
func Expect(msg *nats.Msg, filter string, last uint64) {
	if msg.Header == nil {
		msg.Header = nats.Header{}
	}
	msg.Header[headerExpectedSubjectSequence] = []string{strconv.FormatUint(last, 10)}
	if filter != msg.Subject {
		msg.Header[headerExpectedSubject] = []string{filter}
	}
}

// Store stores messages in the order given, all in one stream, and gives the sequence of the last
// one. One message is stored by itself, up to MaxBatch as one atomic batch: all of them or none. It
// sends once; the errors are ErrConflict, ErrNoStream, ErrUnsure, a *BrokerError, or that a message
// is too big or there are too many. Headers are added to the messages. Without a deadline of ctx
// the broker gets 5 s.
func Store(ctx context.Context, nc *nats.Conn, msgs ...*nats.Msg) (last uint64, err error) {
	if len(msgs) == 0 || len(msgs) > MaxBatch {
		return 0, fmt.Errorf("store %d messages: 1 to %d are allowed", len(msgs), MaxBatch)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, storeTimeout)
		defer cancel()
	}
	if len(msgs) > 1 {
		if err := sendBatch(nc, msgs); err != nil {
			return 0, err
		}
	}
	answer, err := nc.RequestMsgWithContext(ctx, msgs[len(msgs)-1])
	if err != nil {
		return 0, storeError(err)
	}
	var ack struct {
		Seq   uint64       `json:"seq"`
		Error *BrokerError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return 0, fmt.Errorf("%w: unreadable answer: %w", ErrUnsure, err)
	}
	switch {
	case ack.Error == nil && ack.Seq == 0:
		return 0, fmt.Errorf("%w: an answer without a sequence", ErrUnsure)
	case ack.Error == nil:
		return ack.Seq, nil
	case ack.Error.Code == codeWrongLastSequence, ack.Error.Code == codeWrongLastSequenceConstant:
		return 0, fmt.Errorf("%w: %w", ErrConflict, ack.Error)
	case ack.Error.Code == codeStreamNotFound:
		return 0, fmt.Errorf("%w: %w", ErrNoStream, ack.Error)
	case ack.Error.full():
		return 0, fmt.Errorf(
			"%w: %w", ack.Error,
			domain.Unavailable("the broker cannot store at the moment: try again later"),
		)
	default:
		return 0, ack.Error
	}
}

// sendBatch gives the messages their places in a batch and sends all but the last. Nothing is
// stored before that one arrives.
func sendBatch(nc *nats.Conn, msgs []*nats.Msg) error {
	id := nuid.Next()
	for i, msg := range msgs {
		if msg.Header == nil {
			msg.Header = nats.Header{}
		}
		msg.Header[headerBatchID] = []string{id}
		msg.Header[headerBatchSequence] = []string{strconv.Itoa(i + 1)}
		if i == len(msgs)-1 {
			msg.Header[headerBatchCommit] = []string{"1"}
			break
		}
		if err := nc.PublishMsg(msg); err != nil {
			return fmt.Errorf("store message %d of %d: %w", i+1, len(msgs), err)
		}
	}
	return nil
}

// storeError sorts what a request can fail with: whether the message can have reached the broker.
func storeError(err error) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: %w", ErrNoStream, err)
	case errors.Is(err, nats.ErrMaxPayload),
		errors.Is(err, nats.ErrBadSubject),
		errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("store: %w", err)
	default:
		return fmt.Errorf("%w: %w", ErrUnsure, err)
	}
}
