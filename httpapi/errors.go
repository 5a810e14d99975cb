package httpapi

import (
	"context"
	"errors"

	"hubcloud/domain"
	"hubcloud/httpapi/response"
)

// writeError answers with err. A request for a page of the portal gets a page, any other the
// contract's error body. A client that has gone gets nothing.
func (req *request) writeError(err error) {
	if errors.Is(err, context.Canceled) && req.http.Context().Err() != nil {
		req.status = statusClientGone
		return
	}
	answer := response.FromError(err)
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

func invalid(format string, args ...any) error {
	return domain.Errorf(domain.CodeInvalidRequest, format, args...)
}
