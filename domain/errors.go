package domain

import (
	"errors"
	"fmt"
	"time"
)

// Code is the `type` of an error as the contract names it. Clients branch on it.
type Code string

// The codes of the contract, in the order of its table.
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

// CodeServiceUnavailable is the service's addition to the contract's table: a part of the service
// cannot answer at the moment, such as a stream without a leader or a database that restarts. The
// same request succeeds later. Such an Error always has a RetryAfter.
const CodeServiceUnavailable Code = "service_unavailable"

// Unavailable returns a service_unavailable Error. The message says what is known: which part
// cannot answer, and whether anything was done. It never holds a secret or the text of an internal
// error.
func Unavailable(format string, args ...any) *Error {
	return &Error{
		Code:       CodeServiceUnavailable,
		Message:    fmt.Sprintf(format, args...),
		RetryAfter: unavailableRetryAfter,
	}
}

// unavailableRetryAfter is how long clients wait after service_unavailable: a new leader is usually
// there by then.
const unavailableRetryAfter = 2 * time.Second

// Error is a refusal that a caller may see: its code, and a message that says which field or thing,
// what was wrong with it and what is allowed. A message never holds a secret. Everything that is
// not an Error reaches clients as internal_error without its text.
type Error struct {
	Code    Code
	Message string
	// RetryAfter is how long the caller should wait before the same request again; zero when the
	// code alone says it.
	RetryAfter time.Duration
}

// Error gives the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Is makes errors.Is(err, &Error{Code: c}) true for every Error of that code, whatever its message.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Message == "" || t.Message == e.Message)
}

// Errorf makes an Error.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf gives the code of the first Error in err's chain, and CodeInternal for any other error.
// err must not be nil.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}
