package streams

import (
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// IsConflict reports whether a write was refused because what it was based on has changed: an
// append (ErrConflict), or the change of a bucket's key. Streams of one copy and of several have
// different codes for it.
func IsConflict(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, ErrConflict) || errors.As(err, &refused) &&
		(refused.ErrorCode == codeWrongLastSequence || refused.ErrorCode == codeWrongLastSequenceConstant)
}
