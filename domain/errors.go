package domain

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Code is the `type` of an API error. Clients branch on it.
type Code string

// The codes of the contract, in the order of its table. A new code needs a status in
// httpapi/response, an entry in httpapi/openapi.yaml and a constant in httpapi/client/errors.go.
// Tests compare the first two.
const (
	CodeInvalidRequest      Code = "invalid_request"
	CodeUnauthenticated     Code = "unauthenticated"
	CodeInsufficientScope   Code = "insufficient_scope"
	CodeForbidden           Code = "forbidden"
	CodeNotFound            Code = "not_found"
	CodeIdempotencyConflict Code = "idempotency_conflict"
	CodeCursorExpired       Code = "cursor_expired"
	CodeCommandRefused      Code = "command_refused"
	CodeHubNotAddable       Code = "hub_not_addable"
	CodeRateLimited         Code = "rate_limited"
	CodeInternal            Code = "internal_error"
	CodeHubError            Code = "hub_error"
	CodeHubOffline          Code = "hub_offline"
	CodeHubUnavailable      Code = "hub_unavailable"
	CodeHubTimeout          Code = "hub_timeout"
)

// CodeServiceUnavailable is an addition to the contract's table: a part of the service cannot
// answer at the moment, such as a stream without a leader or a database that restarts. The same
// request succeeds later. Such an Error always has a RetryAfter.
const CodeServiceUnavailable Code = "service_unavailable"

// Unavailable returns a service_unavailable Error. The message must name the part that cannot
// answer and whether anything was changed. It must not contain secrets or texts of internal errors.
func Unavailable(format string, args ...any) *Error {
	return &Error{
		Code:       CodeServiceUnavailable,
		Message:    fmt.Sprintf(format, args...),
		RetryAfter: unavailableRetryAfter,
	}
}

// UnavailableBecause returns an error that is both Unavailable, with the message, and cause.
// Clients see the message, the log has both. cause must not be nil.
func UnavailableBecause(cause error, format string, args ...any) error {
	return fmt.Errorf("%w: %w", Unavailable(format, args...), cause)
}

// unavailableRetryAfter is how long clients wait after service_unavailable. A new leader is usually
// elected by then.
const unavailableRetryAfter = 2 * time.Second

// Error is an error that callers of the API may see. Its message names the field, what is wrong
// with it and what is allowed, and never contains a secret. Any other error reaches clients as
// internal_error without its text.
type Error struct {
	Code    Code
	Message string
	// RetryAfter is how long the caller should wait before repeating the request; zero if unknown.
	RetryAfter time.Duration
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is reports whether target is an Error of the same code and with the same message. A target
// without a message matches every message.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Message == "" || t.Message == e.Message)
}

// Errorf returns an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// RateLimited returns a rate_limited Error. The same request can succeed after the duration.
func RateLimited(after time.Duration, format string, args ...any) *Error {
	return &Error{
		Code: CodeRateLimited, Message: fmt.Sprintf(format, args...), RetryAfter: after,
	}
}

// CodeOf returns the code of the first Error in err's chain, and CodeInternal if there is none. err
// must not be nil.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// OutcomeCanceled is the outcome of an operation whose caller has gone or whose deadline is over.
const OutcomeCanceled = "canceled"

// OutcomeOf returns the outcome of an operation for metrics, log lines and records: success for a
// nil error, OutcomeCanceled for the error of a context, and otherwise the error's code.
func OutcomeOf(err error, success string) string {
	switch {
	case err == nil:
		return success
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return OutcomeCanceled
	}
	return string(CodeOf(err))
}
