package httpapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hubcloud/domain"
	"hubcloud/httpapi/apierror"
)

// writeError answers with err. A request for a page of the portal gets a page, any other the
// contract's error body. A client that has gone gets nothing.
func (req *request) writeError(err error) {
	if errors.Is(err, context.Canceled) && req.http.Context().Err() != nil {
		req.status = statusClientGone
		return
	}
	answer := apierror.From(err)
	if answer.Cause != nil {
		req.err = answer.Cause
	}
	answer.SetHeader(req.w.Header())
	if req.writeErrorPage(answer) {
		return
	}
	if err := req.writeJSON(answer.Status, answer.Body(req.id)); err != nil {
		req.err = err
	}
}

// changedReadTimeout bounds how long the answer to a change waits for the read models once the
// change is stored.
const changedReadTimeout = 3 * time.Second

// changedUnread returns the error of a change that is stored but cannot be shown, because the read
// models do not answer. The request can be repeated: the change is made once.
func changedUnread(what string, err error) error {
	if code := domain.CodeOf(err); code != domain.CodeServiceUnavailable &&
		!errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", domain.Unavailable(
		"the change is stored, but the %s cannot be read at the moment; the request can be repeated",
		what,
	), err)
}

func invalid(format string, args ...any) error {
	return domain.Errorf(domain.CodeInvalidRequest, format, args...)
}
