package response

import (
	"context"
	"errors"
	"maps"
	"math"
	"net/http"
	"strconv"
	"time"

	"hubcloud/domain"
)

// statuses holds the HTTP status of each code of the contract.
var statuses = map[domain.Code]int{
	domain.CodeInvalidRequest:      http.StatusBadRequest,
	domain.CodeUnauthenticated:     http.StatusUnauthorized,
	domain.CodeInsufficientScope:   http.StatusForbidden,
	domain.CodeForbidden:           http.StatusForbidden,
	domain.CodeNotFound:            http.StatusNotFound,
	domain.CodeIdempotencyConflict: http.StatusConflict,
	domain.CodeCursorExpired:       http.StatusGone,
	domain.CodeCommandRefused:      http.StatusUnprocessableEntity,
	domain.CodeHubNotAddable:       http.StatusUnprocessableEntity,
	domain.CodeRateLimited:         http.StatusTooManyRequests,
	domain.CodeInternal:            http.StatusInternalServerError,
	domain.CodeHubError:            http.StatusBadGateway,
	domain.CodeHubOffline:          http.StatusServiceUnavailable,
	domain.CodeHubUnavailable:      http.StatusServiceUnavailable,
	domain.CodeHubTimeout:          http.StatusGatewayTimeout,
	domain.CodeServiceUnavailable:  http.StatusServiceUnavailable,
}

// Status returns the HTTP status of a code, and false for a code that the contract does not have.
func Status(code domain.Code) (status int, ok bool) {
	status, ok = statuses[code]
	return status, ok
}

// Statuses returns a copy of the whole table.
func Statuses() map[domain.Code]int { return maps.Clone(statuses) }

// statusError is an error with an HTTP status other than the one of its code.
type statusError struct {
	error
	status int
}

func (e *statusError) Unwrap() error { return e.error }

// WithStatus returns err with a status of its own. It is for cases that HTTP distinguishes and the
// contract's codes do not, such as 405.
func WithStatus(status int, err *domain.Error) error { return &statusError{err, status} }

// Answer is an error as a client sees it.
type Answer struct {
	Status int
	// Error has the code, the message and the delay to send. It is never nil.
	Error *domain.Error
	// Cause is the error to log. It is nil if the caller caused the error.
	Cause error
}

var errInternal = domain.Errorf(
	domain.CodeInternal, "something failed on our side; quote the request id to support",
)

// FromError returns the answer to a request that failed with err.
func FromError(err error) Answer {
	var known *domain.Error
	if !errors.As(err, &known) && errors.Is(err, context.DeadlineExceeded) {
		err = domain.UnavailableBecause(
			err,
			"the request was not finished in time because part of the service is not responding; "+
				"a change may have been made",
		)
	}
	if !errors.As(err, &known) {
		return Answer{http.StatusInternalServerError, errInternal, err}
	}
	status, ok := statuses[known.Code]
	if !ok || known.Code == domain.CodeInternal {
		return Answer{http.StatusInternalServerError, errInternal, err}
	}
	answer := Answer{Status: status, Error: known}
	if known.Code == domain.CodeServiceUnavailable {
		answer.Cause = err
	}
	var special *statusError
	if errors.As(err, &special) {
		answer.Status = special.status
	}
	return answer
}

// SetHeader sets the header fields that belong to the answer's status: WWW-Authenticate, which RFC
// 9110 (section 11.6.1) requires with 401, or Retry-After.
func (a Answer) SetHeader(header http.Header) {
	switch {
	case a.Status == http.StatusUnauthorized:
		header["WWW-Authenticate"] = []string{"Bearer"}
	case a.Error.RetryAfter > 0 || a.Status == http.StatusTooManyRequests ||
		a.Error.Code == domain.CodeServiceUnavailable:
		header.Set("Retry-After", strconv.Itoa(max(1, WholeSeconds(a.Error.RetryAfter))))
	}
}

// WholeSeconds rounds d up to seconds.
func WholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// Body is the contract's error body.
type Body struct {
	Error Detail `json:"error"`
}

// Detail is what the error body says about the error.
type Detail struct {
	Type      domain.Code `json:"type"`
	Message   string      `json:"message"`
	RequestID string      `json:"request_id"`
}

// Body returns the error body of the answer to the request with that id.
func (a Answer) Body(requestID string) Body {
	return Body{Detail{Type: a.Error.Code, Message: a.Error.Message, RequestID: requestID}}
}
