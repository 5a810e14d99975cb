package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/codestatus"
)

// refusal is an Error with a status of its own, for what HTTP tells apart and the contract's types
// do not.
type refusal struct {
	status int
	Err    *domain.Error
}

func (r *refusal) Error() string { return r.Err.Error() }
func (r *refusal) Unwrap() error { return r.Err }

// errorBody is the contract's.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Type      domain.Code `json:"type"`
	Message   string      `json:"message"`
	RequestID string      `json:"request_id"`
}

// refuse answers with err, the only place that renders one. What is no domain.Error is told as
// internal_error without its text.
func (x *exchange) refuse(err error) {
	if errors.Is(err, context.Canceled) && x.r.Context().Err() != nil {
		x.status = statusClientGone
		return
	}
	var known *domain.Error
	if !errors.As(err, &known) && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%w: %w", domain.Unavailable(
			"the request was not finished in time: a part of the service does not answer at the "+
				"moment; what was to be changed may have been",
		), err)
	}
	status, told := 0, false
	if errors.As(err, &known) && known.Code != domain.CodeInternal {
		status, told = codestatus.Of(known.Code)
	}
	if !told {
		x.err = err
		known, status = domain.Errorf(
			domain.CodeInternal, "something failed on our side; quote the request id to support",
		), http.StatusInternalServerError
	}
	if known.Code == domain.CodeServiceUnavailable {
		x.err = err // with its cause, for the log
	}
	var special *refusal
	if errors.As(err, &special) {
		status = special.status
	}
	switch {
	case status == http.StatusUnauthorized:
		// RFC 9110, section 11.6.1: a 401 names at least one scheme.
		x.w.Header()["WWW-Authenticate"] = []string{"Bearer"}
	case known.RetryAfter > 0 || status == http.StatusTooManyRequests || known.Code == domain.CodeServiceUnavailable:
		x.w.Header().Set("Retry-After", strconv.Itoa(max(1, wholeSeconds(known.RetryAfter))))
	}
	if x.refusedToPerson(status, known) {
		return
	}
	if err := x.writeJSON(status, errorBody{
		errorDetail{Type: known.Code, Message: known.Message, RequestID: x.id},
	}); err != nil {
		x.err = err
	}
}

// changedReadTimeout bounds how long the answer to a change waits for the read models, after the
// change itself has.
const changedReadTimeout = 3 * time.Second

// changedUnread returns the error of a change that is stored, and whose answer needs what cannot be
// read at the moment. Given again, the change changes nothing.
func changedUnread(what string, err error) error {
	if code := domain.CodeOf(err); code != domain.CodeServiceUnavailable &&
		!errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf(
		"%w: %w",
		domain.Unavailable(
			"the change is stored; the %s as it is now cannot be read at the moment, and the request can be repeated",
			what,
		),
		err,
	)
}

// wholeSeconds rounds d up.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

func invalid(format string, args ...any) error {
	return domain.Errorf(domain.CodeInvalidRequest, format, args...)
}
