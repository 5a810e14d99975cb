package jsapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hubcloud/domain"
)

var (
	// ErrNotFound reports that the stream has no such message.
	ErrNotFound = errors.New("no such message")
	// ErrNoStream reports that no stream has that name or that subject, or that the server that
	// answered does not know of the stream yet. Nothing was stored.
	ErrNoStream = errors.New("no such stream")
	// ErrNoLeader reports that the stream has no leader at the moment: none answered, a follower
	// answered in its place, or a majority has not answered the leader lately.
	ErrNoLeader = errors.New("no leader at the moment")
	// ErrOffline reports that every server with a copy of the stream is away, as the cluster's
	// leader sees it. It is an ErrNoLeader as well.
	ErrOffline = fmt.Errorf("%w: every server with a copy is away", ErrNoLeader)
	// ErrConflict reports that nothing was stored because the expected sequence is not the last
	// one any more.
	ErrConflict = errors.New("conflict: the expected sequence is not the last one")
	// ErrOutcomeUnknown reports that the answer to an append was lost: the messages may be stored,
	// may be stored later, or may not be stored at all.
	ErrOutcomeUnknown = errors.New("unknown whether the messages were stored")
	// ErrUnconfirmed reports that the broker's answer contradicts an earlier answer, and that no
	// leader has confirmed it yet.
	ErrUnconfirmed = errors.New("the broker contradicts what was seen before")
	// ErrTornBatch reports that messages of a batch were lost on their way. The caller can ask for
	// them again.
	ErrTornBatch = errors.New("messages of a batch were lost on their way")
)

// Error codes of the broker that nats.go has no constant for. Error texts are never compared.
const (
	codeNoSuitablePeers       jetstream.ErrorCode = 10005 // too few servers are there at the moment
	codeInsufficientResources jetstream.ErrorCode = 10023 // the disk is full or fails
	codeStorageExceeded       jetstream.ErrorCode = 10047 // the account's limit is reached
	codeStoreFailed           jetstream.ErrorCode = 10077 // the stream is full, or its disk fails
	codeStreamOffline         jetstream.ErrorCode = 10118 // every server with a copy is away
	// Replicated streams and batches report a wrong last sequence by this code instead of
	// jetstream.JSErrCodeStreamWrongLastSequence.
	codeWrongLastSequenceConstant jetstream.ErrorCode = 10164
)

// apiError returns an error that the broker answered, wrapped in the sentinel for its code. It
// returns nil for nil.
func apiError(answered *jetstream.APIError) error {
	switch {
	case answered == nil:
		return nil
	case answered.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return fmt.Errorf("%w: %w", ErrNotFound, answered)
	case answered.ErrorCode == jetstream.JSErrCodeStreamNotFound:
		return fmt.Errorf("%w: %w", ErrNoStream, answered)
	case isWrongLastSequence(answered):
		return fmt.Errorf("%w: %w", ErrConflict, answered)
	case isFull(answered):
		return domain.UnavailableBecause(
			answered, "the broker cannot store at the moment: try again later",
		)
	case answered.ErrorCode == codeStreamOffline:
		return fmt.Errorf("%w: %w", ErrOffline, answered)
	case answered.Code == http.StatusServiceUnavailable:
		return fmt.Errorf("%w: %w", ErrNoLeader, answered)
	default:
		return answered
	}
}

func isWrongLastSequence(answered *jetstream.APIError) bool {
	return answered.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		answered.ErrorCode == codeWrongLastSequenceConstant
}

func isFull(answered *jetstream.APIError) bool {
	return answered.ErrorCode == codeInsufficientResources ||
		answered.ErrorCode == codeStorageExceeded || answered.ErrorCode == codeStoreFailed
}

// IsConflict reports whether a write was rejected because what it was based on has changed: an
// append (ErrConflict), or a change of a key by nats.go's client.
func IsConflict(err error) bool {
	var answered *jetstream.APIError
	return errors.Is(err, ErrConflict) ||
		errors.As(err, &answered) && isWrongLastSequence(answered)
}

// IsStreamFull reports whether a message was rejected because the stream has reached one of its
// limits, or because its disk fails.
func IsStreamFull(err error) bool {
	var answered *jetstream.APIError
	return errors.As(err, &answered) && answered.ErrorCode == codeStoreFailed
}

// isUnanswered reports whether no leader has answered a request, by this package's errors and by
// nats.go's. Retry repeats requests after these errors.
func isUnanswered(err error) bool {
	var answered *jetstream.APIError
	return errors.Is(err, ErrNoLeader) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.As(err, &answered) && (answered.Code == http.StatusServiceUnavailable ||
			answered.ErrorCode == codeNoSuitablePeers)
}

// IsTemporary reports whether the same call can succeed later: the broker cannot be reached, a
// stream has no leader, or an answer was lost. After ErrOutcomeUnknown, which is temporary too, the
// messages may already be stored. A missing stream is temporary as well: the service declares all
// its streams when it starts, but a server that has just started or is cut off may not know of
// them.
func IsTemporary(err error) bool {
	return isUnanswered(err) || isAny(err,
		ErrNoStream, ErrOutcomeUnknown, ErrUnconfirmed, ErrTornBatch,
		nats.ErrConnectionClosed, nats.ErrTimeout, nats.ErrReconnectBufExceeded,
		nats.ErrDisconnected)
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// Unavailable returns err as a domain.Unavailable with the message given if IsTemporary(err), and
// err itself otherwise. A *domain.Error stays as it is, and nil stays nil.
func Unavailable(err error, format string, args ...any) error {
	var known *domain.Error
	if err == nil || errors.As(err, &known) || !IsTemporary(err) {
		return err
	}
	return domain.UnavailableBecause(err, format, args...)
}
